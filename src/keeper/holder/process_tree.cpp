#include "keeper/holder/process_tree.hpp"

#include "base/files.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <set>
#include <string>
#include <utility>

namespace berth::keeper {
namespace {

// A larger tree is seen in parts: the pass that kills the first part finds the next.
constexpr std::size_t tree_processes_max = 65536;

template <class Number>
std::optional<Number> parsed(std::string_view text) {
  Number value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string proc_of(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

template <class Visit>
void for_each_number_in(const std::string& path, Visit visit) {
  const auto names = names_in(path);
  if (!names) return;
  for (const std::string& name : *names) {
    if (const auto number = parsed<pid_t>(name)) visit(*number);
  }
}

void append_children(const std::string& text, std::vector<pid_t>& out) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    if (const auto pid = parsed<pid_t>(std::string_view{text}.substr(at, space - at))) {
      out.push_back(*pid);
    }
    at = space + 1;
  }
}

// A child belongs to the thread that made it, so every thread is read.
void append_children_of(pid_t pid, std::vector<pid_t>& out) {
  constexpr std::size_t list_bytes_max = std::size_t{1} << 20;
  const std::string tasks = proc_of(pid) + "/task";
  for_each_number_in(tasks, [&](pid_t task) {
    const auto text = read_file(tasks + "/" + std::to_string(task) + "/children", list_bytes_max);
    if (text) append_children(*text, out);
  });
}

bool has_children_files() {
  return ::access("/proc/thread-self/children", R_OK) == 0;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // The name in parentheses may contain anything, even ')' and spaces: the last ')' ends it.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  constexpr std::size_t first_field = 3;  // the state; numbered as in proc(5)
  constexpr std::size_t last_field = 24;
  std::array<std::string_view, last_field + 1> fields{};
  std::size_t at = name_end + 2;
  for (std::size_t i = first_field; i <= last_field; ++i) {
    if (at >= text.size()) return std::nullopt;
    const std::size_t space = std::min(text.find(' ', at), text.size());
    fields[i] = text.substr(at, space - at);
    at = space + 1;
  }
  ProcessStat stat;
  stat.state = fields[3].empty() ? '?' : fields[3][0];
  const auto parent = parsed<pid_t>(fields[4]);
  const auto start = parsed<std::uint64_t>(fields[22]);
  if (!parent || !start) return std::nullopt;
  stat.parent = *parent;
  stat.start_ticks = *start;
  for (const std::size_t i : {14U, 15U, 16U, 17U}) {
    stat.cpu_ticks += parsed<std::uint64_t>(fields[i]).value_or(0);
  }
  stat.resident_pages = parsed<std::uint64_t>(fields[24]).value_or(0);
  return stat;
}

std::optional<ProcessStat> process_stat(pid_t pid) {
  const auto text = read_file(proc_of(pid) + "/stat", 4096);
  if (!text) return std::nullopt;
  return parse_process_stat(*text);
}

std::vector<pid_t> descendants_by_scan(pid_t root) {
  std::vector<std::pair<pid_t, pid_t>> child_of;  // parent, child
  for_each_number_in("/proc", [&](pid_t pid) {
    if (const auto stat = process_stat(pid)) child_of.emplace_back(stat->parent, pid);
  });
  std::ranges::sort(child_of);
  std::vector<pid_t> found;
  pid_t parent = root;
  for (std::size_t next = 0;; parent = found[next++]) {
    for (const auto& [above, pid] :
         std::ranges::equal_range(child_of, parent, {}, &std::pair<pid_t, pid_t>::first)) {
      found.push_back(pid);
    }
    if (next == found.size() || found.size() > tree_processes_max) return found;
  }
}

std::vector<pid_t> descendants_of(pid_t root) {
  if (!has_children_files()) return descendants_by_scan(root);
  std::vector<pid_t> found;
  append_children_of(root, found);
  for (std::size_t next = 0; next < found.size() && found.size() <= tree_processes_max; ++next) {
    append_children_of(found[next], found);
  }
  return found;
}

bool has_children() {
  siginfo_t ignored{};
  return ::waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

void stop_descendants_of(pid_t root) {
  constexpr int rounds_max = 64;
  std::set<pid_t> stopped;
  for (int round = 0; round < rounds_max; ++round) {
    bool found_new = false;
    for (const pid_t pid : descendants_of(root)) {
      if (!stopped.insert(pid).second) continue;
      found_new = true;
      ::kill(pid, SIGSTOP);
    }
    if (!found_new) return;
  }
}

std::size_t kill_descendants_of(pid_t root, int limit_ms) {
  constexpr int pause_ms = 2;
  stop_descendants_of(root);
  for (int waited_ms = 0;; waited_ms += pause_ms) {
    const std::vector<pid_t> tree = descendants_of(root);
    for (const pid_t pid : tree) ::kill(pid, SIGKILL);
    if (tree.empty() || waited_ms >= limit_ms) return tree.size();
    ::poll(nullptr, 0, pause_ms);
  }
}

}  // namespace berth::keeper
