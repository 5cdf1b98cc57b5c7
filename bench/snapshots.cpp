// snapshots FOLDER FILES ROUNDS: what a snapshot and a checkout of FILES files cost, compared with
// git on the same files, measured alternately. Prints milliseconds: the first snapshot and `git
// add` of the same; an unchanged snapshot, one after 10 edits, and `git status`; a checkout and
// `git checkout-index`.

#include "base/files.hpp"
#include "snapshots/checkout.hpp"
#include "snapshots/snapshot.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace berth;
using namespace berth::snapshots;

template <class T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "snapshots: %s\n", result.error().message.c_str());
  std::exit(1);
}

template <class Work>
double milliseconds(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void shell(const std::string& command) {
  if (std::system(command.c_str()) == 0) return;
  std::fprintf(stderr, "snapshots: failed: %s\n", command.c_str());
  std::exit(1);
}

// Twenty files to a folder, of 1 to 8 KB, half of it noise.
void fill(const std::string& folder, int files) {
  unsigned seed = 1;
  for (int i = 0; i < files; ++i) {
    const std::string at =
        folder + "/d" + std::to_string(i / 400) + "/e" + std::to_string(i / 20 % 20);
    if (i % 20 == 0) std::filesystem::create_directories(at);
    std::string text;
    const std::size_t size = 1024 + (seed = seed * 1664525 + 1013904223) % 7168;
    while (text.size() < size) {
      seed = seed * 1664525 + 1013904223;
      text += "value " + std::to_string(seed) + " of a line\n";
    }
    std::ofstream{at + "/f" + std::to_string(i)} << text;
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const std::string home = words[1];
  const int files = std::atoi(words[2]);
  const int rounds = std::atoi(words[3]);
  const std::string folder = home + "/folder";
  fill(folder, files);
  const Repository repository = must(Repository::create(GitProgram{}, home + "/repository"));
  const std::string judge =
      "git -C " + folder + " --git-dir=" + home + "/judge --work-tree=" + folder;
  shell("git init -q --bare " + home + "/judge");
  const SnapshotOptions options{.cache = "bench"};

  Snapshot taken;
  const double first =
      milliseconds([&] { taken = must(take_snapshot(repository, folder, options)); });
  const double added = milliseconds([&] { shell(judge + " add -A"); });
  must(take_snapshot(repository, folder, options));

  std::vector<double> unchanged;
  std::vector<double> edited;
  std::vector<double> status;
  for (int i = 0; i < rounds; ++i) {
    status.push_back(milliseconds([&] { shell(judge + " status --porcelain > /dev/null"); }));
    unchanged.push_back(milliseconds([&] { must(take_snapshot(repository, folder, options)); }));
    for (int f = 0; f < 10; ++f) {
      std::ofstream{folder + "/d" + std::to_string(f % 3) + "/e0/f" + std::to_string(f % 3 * 400)}
          << "edit " << i << " " << f;
    }
    edited.push_back(
        milliseconds([&] { taken = must(take_snapshot(repository, folder, options)); }));
    shell(judge + " add -A");
  }
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < std::min(rounds, 3); ++i) {
    ours.push_back(
        milliseconds([&] { must(check_out(repository, taken.commit, home + "/ours")); }));
    std::filesystem::remove_all(home + "/ours");
    theirs.push_back(milliseconds([&] {
      shell(judge + " checkout-index -a --prefix=" + home + "/theirs/ && sync -f " + home);
    }));
    std::filesystem::remove_all(home + "/theirs");
  }
  std::printf("%.1f %.1f %.1f %.1f %.1f %.1f %.1f\n", first, added, median(unchanged),
              median(edited), median(status), median(ours), median(theirs));
  return 0;
}
