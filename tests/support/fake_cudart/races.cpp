// SPDX-License-Identifier: Apache-2.0
// Finds uses of the same bytes that nothing puts in order. It compares vector clocks, not times, so
// it does not matter which of the two happened to run first.
#include <algorithm>
#include <string>
#include <utility>

#include "state.hpp"

namespace fake_cudart {

namespace {

bool before(const Access& first, const Access& second) {
  const Clock& start = second.from_call_on ? second.op->host_clock : second.op->clock;
  return start.at(first.op->actor) >= first.op->step;
}

bool overlap(const Access& a, const Access& b) { return a.begin < b.end && b.begin < a.end; }

std::string who(const Op& op) {
  if (op.actor == kHost) return std::string("the host (") + op.call + ")";
  return std::string(op.call) + " in stream " + std::to_string(op.actor);
}

void check(const Region& region, const Access& access, bool write,
           const std::vector<Access>& others, const char* verb) {
  for (const Access& other : others) {
    if (other.op == access.op || !overlap(other, access)) continue;
    if (before(other, access) || before(access, other)) continue;
    if (access.op->raced_with == other.op.get()) return;
    access.op->raced_with = other.op.get();
    const Address begin = std::max(access.begin, other.begin);
    add_fault(FaultKind::kRace, access.op->call,
              who(*access.op) + (write ? " writes " : " reads ") +
                  std::to_string(std::min(access.end, other.end) - begin) + " bytes at offset " +
                  std::to_string(begin - region.begin) + " of " + describe(region) + ", which " +
                  who(*other.op) + " " + verb +
                  "; no event, stream or synchronisation puts one before the other");
    return;
  }
}

/// True if every later access that races with `access` also races with one that is kept.
bool outdated(const Region& region, const Access& access) {
  const State& s = state();
  const Op& op = *access.op;
  for (const OpPtr& body : s.pending_bodies)
    if (body->clock.at(op.actor) < op.step) return false;
  if (s.host.at(op.actor) >= op.step) return true;
  return std::any_of(region.writes.begin(), region.writes.end(), [&](const Access& write) {
    return write.op != access.op && write.begin <= access.begin && access.end <= write.end &&
           before(access, write);
  });
}

void prune(Region& region) {
  const auto is_outdated = [&](const Access& access) { return outdated(region, access); };
  std::erase_if(region.reads, is_outdated);
  std::vector<Access> kept;  // erase_if would judge by a list that it is moving around
  for (const Access& write : region.writes)
    if (!is_outdated(write)) kept.push_back(write);
  region.writes = std::move(kept);
  region.prune_at = std::max<std::size_t>(128, 2 * (region.reads.size() + region.writes.size()));
}

}  // namespace

void record(Region& region, Access access, bool write) {
  if (access.begin == access.end) return;
  check(region, access, write, region.writes, "writes");
  if (write) check(region, access, write, region.reads, "reads");
  (write ? region.writes : region.reads).push_back(std::move(access));
  if (region.reads.size() + region.writes.size() > region.prune_at) prune(region);
}

void record_host(const char* call, Region& region, Address begin, Address end, bool write) {
  State& s = state();
  auto op = std::make_shared<Op>();
  op->call = call;
  op->step = s.host.at(kHost) + 1;
  s.host.set(kHost, op->step);
  op->clock = s.host;
  op->host_clock = s.host;
  op->done = true;
  record(region, {begin, end, std::move(op), false}, write);
}

bool write_pending(const Region& region, Address begin, Address end) {
  const Access range{begin, end, nullptr, false};
  return std::any_of(region.writes.begin(), region.writes.end(),
                     [&](const Access& write) { return overlap(write, range) && !write.op->done; });
}

}  // namespace fake_cudart
