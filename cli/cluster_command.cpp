// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>

#include "cli/add_option.hpp"
#include "cli/cluster_job.hpp"
#include "cli/commands.hpp"
#include "cli/option_values.hpp"
#include "cli/say.hpp"
#include "precache/formats/error.hpp"
#include "precache/version.hpp"

namespace precache {
namespace {

using cluster::KubernetesJob;
using cluster::SlurmJob;

/// Options of build that each job sets itself, or that do not fit a job.
constexpr std::array kOptionsOfSteps{"--prepare", "--part",  "--parts",         "--finish",
                                     "--status",  "--watch", "--watch-seconds", "--jobs",
                                     "--dry-run", "--quiet", "--json",          "--overwrite"};

/// Options of build that need all shards.
constexpr std::array kOptionsOfFinish{"--index"};

/// A subcommand with the options of build. Its own are those that are added after it was made.
struct Scheduler {
  CLI::App* app = nullptr;
  std::vector<const CLI::Option*> options_of_build;
  std::shared_ptr<Action> build;  // never runs
};

Scheduler add_scheduler(CLI::App& app, const std::string& name, const std::string& text) {
  auto build = std::make_shared<Action>();
  add_build(app, *build);
  Scheduler scheduler{app.get_subcommand("build"), {}, std::move(build)};
  for (const char* option : kOptionsOfSteps) {
    if (CLI::Option* found = scheduler.app->get_option_no_throw(option)) {
      scheduler.app->remove_option(found);
    }
  }
  for (const CLI::Option* option : std::as_const(*scheduler.app).get_options()) {
    if (option != scheduler.app->get_help_ptr()) scheduler.options_of_build.push_back(option);
  }
  scheduler.app->name(name)->description(text);
  return scheduler;
}

std::string checked_path(const CLI::App& app, const std::string& name) {
  const auto path = app.get_option(name)->as<std::string>();
  cluster::check_printable(name, path);
  if (path == "-") {
    throw InvalidArgument("jobs on other machines cannot read this standard input",
                          "Give a path that all machines see.");
  }
  return path.starts_with('-') ? "./" + path : path;
}

/// The command line of the build as it was given.
void read_words(const Scheduler& scheduler, cluster::ClusterJob& job) {
  job.build = {"precache", "build", checked_path(*scheduler.app, "SOURCE"),
               checked_path(*scheduler.app, "OUT")};
  for (const CLI::Option* option : scheduler.options_of_build) {
    if (option->get_positional() || option->count() == 0) continue;
    const std::string name = option->get_name();
    const bool is_at_end = std::ranges::find(kOptionsOfFinish, name) != kOptionsOfFinish.end();
    auto& words = is_at_end ? job.at_end : job.build;
    if (option->get_expected_max() == 0) {  // a flag
      words.push_back(name);
      continue;
    }
    const std::string value = option->results().back();
    cluster::check_printable(name, value);
    if (value.starts_with('-')) {  // as a separate word it would be another option
      words.push_back(fmt::format("{}={}", name, value));
    } else {
      words.insert(words.end(), {name, value});
    }
  }
}

/// A name that may stand in names of jobs and Pods.
std::string checked_name(const std::string& text) {
  constexpr std::size_t kLongest = 40;  // Kubernetes adds to it, up to 63
  const bool is_label =
      !text.empty() && text.size() <= kLongest &&
      std::isalpha(static_cast<unsigned char>(text[0])) && text.back() != '-' &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (is_label) return text;
  throw InvalidArgument(fmt::format("--name must be the name of a job, got '{}'", printable(text)),
                        "Use up to 40 lower-case letters, digits and dashes, a letter first.");
}

std::string checked_text(const std::string& option, const std::string& text) {
  cluster::check_printable(option, text);
  return option_values::not_empty(option, text);
}

void add_job_options(CLI::App& app, cluster::ClusterJob& job) {
  cli::begin_group(app, "Cluster");
  cli::add_integer(app, "--parts", "N",
                   "Number of jobs that make shards; 4 to 10 for each job that "
                   "runs at a time",
                   std::uint64_t{1}, std::uint64_t{1'000'000}, job.parts)
      ->required();
  cli::add_integer(app, "--prepare-parts", "N [1]",
                   "Number of jobs that list SOURCE, a share each: for millions of files, or "
                   "thousands of tars",
                   std::uint64_t{1}, std::uint64_t{10'000}, job.prepare_parts);
  cli::add_integer(app, "--at-once", "N [all]", "Maximum number of parts that run at the same time",
                   std::uint64_t{1}, std::uint64_t{1'000'000}, job.at_once);
  cli::add_integer(app, "--cpus", fmt::format("N [{}]", job.cpus), "CPUs and threads of each job",
                   1U, 1024U, job.cpus);
  cli::add(app, "--memory", "BYTES [1GiB per CPU]", "Memory of each job",
           [&job](const std::string& text) {
             constexpr std::uint64_t kMiB = 1U << 20U;
             job.memory_mib = (option_values::bytes(text, "--memory") - 1) / kMiB + 1;
           });
  cli::add(app, "--name", "NAME [precache]", "Prefix of the job names",
           [&job](const std::string& text) { job.name = checked_name(text); });
}

void complete(const Scheduler& scheduler, cluster::ClusterJob& job) {
  read_words(scheduler, job);
  if (job.prepare_parts == 1) job.prepare_parts = 0;
  if (job.memory_mib == 0) job.memory_mib = std::uint64_t{1024} * job.cpus;
}

using Printer = std::pair<const CLI::App*, Action>;

Printer add_slurm(CLI::App& app) {
  const Scheduler scheduler =
      add_scheduler(app, "slurm", "Print a script that submits a build to Slurm");
  auto job = std::make_shared<SlurmJob>();
  add_job_options(*scheduler.app, *job);
  cli::add_integer(*scheduler.app, "--time", fmt::format("MINUTES [{}]", job->minutes),
                   "Time limit of each job", std::uint64_t{5}, std::uint64_t{525'600},
                   job->minutes);
  cli::add(*scheduler.app, "--partition", "NAME [the cluster's]", "Partition of the jobs",
           [job](const std::string& text) { job->partition = checked_text("--partition", text); });
  cli::add(*scheduler.app, "--account", "NAME [the user's]", "Account that pays for the jobs",
           [job](const std::string& text) { job->account = checked_text("--account", text); });
  scheduler.app->footer(
      "Examples:\n"
      "  precache cluster slurm images shards --size 256 --parts 64 > job.sh && bash job.sh\n"
      "  precache cluster slurm images shards --parts 64 --cpus 16 --partition cpu | bash\n"
      "\n"
      "All nodes must see SOURCE and OUT under the same paths, and have precache on their PATH.");
  return {scheduler.app, [scheduler, job] {
            complete(scheduler, *job);
            print_raw(cluster::slurm_script(*job));
            return ExitCode::kDone;
          }};
}

/// "data:/data,scratch:/scratch" -> names and paths.
std::vector<std::pair<std::string, std::string>> read_claims(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> claims;
  cluster::check_printable("--claim", text);
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view claim = rest.substr(0, comma);
    const std::size_t colon = claim.find(':');
    if (colon == 0 || colon == std::string_view::npos ||
        !claim.substr(colon + 1).starts_with('/')) {
      throw InvalidArgument(fmt::format("--claim must be NAME:PATH[,NAME:PATH...], got '{}'", text),
                            "For example imagenet:/data.");
    }
    claims.emplace_back(claim.substr(0, colon), claim.substr(colon + 1));
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return claims;
}

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto relative = path.lexically_normal().lexically_relative(folder.lexically_normal());
  return !relative.empty() && *relative.begin() != "..";
}

/// A path on a container's own disk would be lost with the container, and no other Pod sees it.
void check_mounted(const KubernetesJob& job, const CLI::App& app) {
  for (const char* name :
       {"SOURCE", "OUT", "--labels", "--classes", "--split-file", "--mask", "--proto"}) {
    const CLI::Option* option = app.get_option(name);
    if (option->count() == 0) continue;
    const auto path = option->as<std::string>();
    const bool is_word = path == "folder" || path == "none";
    if (is_word && std::string_view(name) == "--labels") continue;
    const auto holds = [&](const auto& claim) { return is_below(path, claim.second); };
    if (std::ranges::any_of(job.claims, holds)) continue;
    throw InvalidArgument(fmt::format("{} must be below a path of --claim, got '{}'", name, path),
                          fmt::format("Pods have only what is mounted: mount the folder of {} with "
                                      "--claim NAME:PATH.",
                                      name));
  }
}

/// The API refuses larger Jobs with retries for each part.
void check_completions(const KubernetesJob& job) {
  constexpr std::uint64_t kMostCompletions = 100'000;
  if (job.parts <= kMostCompletions) return;
  throw InvalidArgument(
      fmt::format("--parts must be at most {} for Kubernetes, got {}", kMostCompletions, job.parts),
      "A part may make several shards.");
}

/// Claims with made-up names for the folder that has both SOURCE and OUT, or for one of each if
/// only the root has both.
std::vector<std::pair<std::string, std::string>> placeholder_claims(
    const std::filesystem::path& source, const std::filesystem::path& out) {
  for (const auto& path : {source, out}) {
    if (path.is_absolute()) continue;
    throw InvalidArgument(
        fmt::format("SOURCE and OUT must be absolute paths without --claim, got '{}'",
                    path.string()),
        "Pods have only what is mounted: give paths as Pods see them, and --claim NAME:PATH.");
  }
  const auto folder_of = [](const std::filesystem::path& path) {
    const auto folder = path.lexically_normal().parent_path();
    return folder == folder.root_path() ? path : folder;
  };
  const auto folder = folder_of(out);
  if (is_below(source, folder)) return {{"precache-data", folder.string()}};
  if (is_below(out, folder_of(source))) return {{"precache-data", folder_of(source).string()}};
  return {{"precache-source", folder_of(source).string()}, {"precache-shards", folder.string()}};
}

void fill_placeholders(KubernetesJob& job, const CLI::App& app) {
  std::vector<std::string> made_up;
  if (job.image.empty()) {
    job.image = fmt::format("registry.example/precache:{}", kVersion);
    made_up.emplace_back("the image");
  }
  if (job.claims.empty()) {
    job.claims = placeholder_claims(app.get_option("SOURCE")->as<std::string>(),
                                    app.get_option("OUT")->as<std::string>());
    made_up.emplace_back("claimName");
  }
  job.placeholders = fmt::format("{}", fmt::join(made_up, " and "));
}

Printer add_kubernetes(CLI::App& app) {
  const Scheduler scheduler =
      add_scheduler(app, "kubernetes", "Print the Jobs of a build on Kubernetes");
  auto job = std::make_shared<KubernetesJob>();
  add_job_options(*scheduler.app, *job);
  cli::add(*scheduler.app, "--image", "IMAGE [a placeholder]", "Container image with precache",
           [job](const std::string& text) { job->image = checked_text("--image", text); });
  cli::add(*scheduler.app, "--claim", "NAME:PATH[,NAME:PATH...] [a placeholder]",
           "Persistent volume claims, and the paths where Pods mount them; several Pods must be "
           "able to write to that of OUT",
           [job](const std::string& text) { job->claims = read_claims(text); });
  scheduler.app->footer(
      "Examples:\n"
      "  precache cluster kubernetes /data/images /data/shards --parts 64 --image "
      "registry/precache "
      "--claim imagenet:/data > job.yaml\n"
      "\n"
      "The first lines of the output have the commands that start the Jobs one after another. "
      "Needs Kubernetes 1.29 or newer; a comment in the output says what to change for older "
      "ones.");
  return {scheduler.app, [scheduler, job] {
            complete(scheduler, *job);
            fill_placeholders(*job, *scheduler.app);
            check_mounted(*job, *scheduler.app);
            check_completions(*job);
            print_raw(cluster::kubernetes_yaml(*job));
            return ExitCode::kDone;
          }};
}

}  // namespace

void add_cluster(CLI::App& app, Action& action) {
  CLI::App* cluster_app = app.add_subcommand(
      "cluster", "Print the job description of a build on a cluster, to read, edit and submit");
  cluster_app->require_subcommand(1);
  cluster_app->footer(
      "Examples:\n"
      "  precache cluster slurm images shards --size 256 --parts 64 > job.sh\n"
      "  precache cluster kubernetes /data/images /data/shards --parts 64 --claim imagenet:/data "
      "> job.yaml\n"
      "  precache cluster slurm --help\n");
  const std::array printers{add_slurm(*cluster_app), add_kubernetes(*cluster_app)};
  // Runs after the callback of build, which checks options that depend on others.
  cluster_app->callback([&action, printers] {
    action = std::ranges::find_if(printers, &CLI::App::parsed, &Printer::first)->second;
  });
}

}  // namespace precache
