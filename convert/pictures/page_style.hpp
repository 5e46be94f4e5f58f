// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace precache::page {

inline constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--paper:#f6f7f9;--card:#fff;--line:#e2e5ea;--ink:#1d2127;--faint:#667080;
--accent:#3569c9;--track:#eceff4;--bad:#b3261e;--bad-paper:#fdecea;--warn:#7a5200;--warn-paper:#fff4dc;
--red:#d0524a;--green:#3f9a5b;--blue:#4272cf}
@media(prefers-color-scheme:dark){:root{--paper:#14161a;--card:#1c1f25;--line:#2e333c;--ink:#e7e9ee;
--faint:#98a1b0;--accent:#7aa5f5;--track:#2a2f38;--bad:#ffb4ab;--bad-paper:#3b1d1b;--warn:#f0c36d;
--warn-paper:#33290f;--red:#ea7b73;--green:#64bd80;--blue:#7ca3f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1120px;margin:0 auto;padding:32px 24px 48px}
header{margin:0 0 20px}
h1{font-size:24px;line-height:1.3;margin:0;overflow-wrap:anywhere;letter-spacing:-.01em}
h2{font-size:13px;margin:0 0 14px;color:var(--faint);font-weight:600;text-transform:uppercase;
letter-spacing:.06em}
h2 small{font-weight:400;text-transform:none;letter-spacing:0;font-size:13px;margin-left:8px}
.kind{color:var(--faint);margin:2px 0 0}
section,.fact{background:var(--card);border:1px solid var(--line);border-radius:10px}
section{padding:20px 22px;margin:16px 0}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:16px;margin:16px 0}
.fact{padding:14px 18px}
.fact b{display:block;font-size:22px;font-weight:600;letter-spacing:-.01em;white-space:nowrap}
.fact span{color:var(--faint);font-size:13px}
dl{display:grid;grid-template-columns:96px 1fr;gap:8px 16px;margin:0}
dt{color:var(--faint)}
dd{margin:0;overflow-wrap:anywhere}
.note{padding:10px 14px;border-radius:8px;margin:12px 0;overflow-wrap:anywhere;background:var(--warn-paper);
  color:var(--warn)}
.damaged{background:var(--bad-paper);color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:18px 14px}
.tile{min-width:0}
.tile .frame{aspect-ratio:1;background:var(--track);border-radius:6px;overflow:hidden;display:flex;
align-items:center;justify-content:center;color:var(--faint);font-size:13px;text-align:center}
.tile img{width:100%;height:100%;object-fit:contain;display:block}
.tile img.small{image-rendering:pixelated}
.tile b,.tile span{display:block;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.tile b{margin-top:6px;font-weight:600;font-size:14px}
.tile span{color:var(--faint);font-size:12px}
.bars{display:grid;grid-template-columns:minmax(0,max-content) 1fr max-content;gap:5px 14px;
align-items:center;font-size:14px}
.bars .name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;max-width:320px}
.track{background:var(--track);border-radius:3px;height:14px;overflow:hidden}
.bar{display:block;height:100%;background:var(--accent);border-radius:3px}
.number{text-align:right;font-variant-numeric:tabular-nums}
svg{display:block;width:100%}
svg.ranked{height:180px;border-bottom:1px solid var(--line)}
.area{fill:var(--accent)}.red{fill:var(--red)}.green{fill:var(--green)}.blue{fill:var(--blue)}
.mean{fill:none;stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 3;vector-effect:non-scaling-stroke}
.axis{display:flex;justify-content:space-between;gap:12px;flex-wrap:wrap;color:var(--faint);
font-size:13px;margin-top:6px}
.axis b{color:var(--ink);font-weight:600}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(240px,1fr));gap:22px}
figure{margin:0}
figcaption{font-size:13px;color:var(--faint);margin-bottom:8px}
figcaption b{color:var(--ink)}
figure svg{height:120px;border-bottom:1px solid var(--line)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;min-width:55%;font-size:14px}
.charts+.scroll{margin-top:18px}
th,td{padding:6px 0 6px 28px;border-bottom:1px solid var(--line);text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}
th{color:var(--faint);font-weight:500}
.word{text-align:left}th:first-child,td:first-child{padding-left:0}
tr:last-child td{border-bottom:0}
details{margin-top:14px}
summary{cursor:pointer;color:var(--accent);font-size:14px;margin-bottom:8px}
footer{color:var(--faint);font-size:13px;margin-top:24px}
)";

}  // namespace precache::page
