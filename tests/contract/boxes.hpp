#pragma once

#include "places/place.hpp"

#include <functional>
#include <set>

namespace berth::engine {

// Sandboxes for tests: each has its own id and exists until it is destroyed; their commands are
// processes on this machine. Verbs can be made to fail.
class Boxes final : public places::Place,
                    private places::Commands,
                    private places::Snapshots,
                    private places::Freezer {
 public:
  explicit Boxes(places::Place& processes)
      : processes_(*processes.abilities().commands), homes_(processes) {}

  std::set<std::string> there;    // ids of live boxes
  std::set<std::string> refused;  // ids that cannot be destroyed; "" means all
  bool refuses_to_acquire = false;
  // Like a plugin's provider: a box is known only by the name that acquire returned.
  bool finds_by_answer = false;
  bool names_by_run = false;  // a repeated acquire returns the same box
  // One box for all reuse requests in an environment, like container providers.
  bool names_by_environment = false;
  bool has_one_box = false;  // returned for every request
  int answers_to_lose = 0;   // acquires that create a box and whose response is lost
  // Runs once, when the next box is created and its response not yet sent.
  std::function<Task<>()> meanwhile;
  bool refuses_in_words = false;
  int captures_to_lose = 0;
  std::set<std::string> missing_images;  // that no config may name when it is saved
  std::set<std::string> templates;       // references to captured templates that were not deleted
  std::set<std::string> frozen;          // ids of frozen boxes
  bool refuses_to_capture = false;
  bool refuses_to_delete = false;
  std::optional<Time> expires_at;          // of the next lease
  std::optional<std::string> signal_told;  // of every command, instead of its own
  std::vector<std::string> verbs;          // "acquire box-1", "resume box-1", "release box-1", ...
  std::vector<bj::object> configs;         // that acquire was given
  std::map<std::string, std::string> secrets;  // as the last verb had them

  Task<places::ProbeReport> probe(const places::AcquireRequest& request) override;
  Task<> check_config(const bj::object& config) override;
  Task<places::Acquired> acquire(const places::AcquireRequest& request) override;
  Task<> release(const places::PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const places::PlaceRef& lease) override;
  Task<std::vector<places::PlaceKey>> held() override;
  Task<> close() override;
  places::Abilities abilities() override {
    return {.commands = this, .snapshots = this, .freezer = this, .found_by_key = !finds_by_answer};
  }

 private:
  Task<places::Workspace> realize(const places::PlaceRef& lease,
                                  const std::optional<std::string>& wanted) override;
  Task<places::Started> start(const places::PlaceRef& lease,
                              const places::Command& command) override;
  Task<places::Ended> follow(const places::PlaceRef& lease, const std::string& exec_id,
                             std::uint64_t offset, places::OutputTaker& taker) override;
  Task<> send(const places::PlaceRef& lease, const std::string& exec_id,
              places::Input input) override;
  Task<> cancel(const places::PlaceRef& lease, const std::string& exec_id,
                std::int64_t grace_ms) override;
  Task<> renew(const places::PlaceRef& lease, std::int64_t deadline_ms) override;
  Task<> forget_output(const places::PlaceRef& lease, const std::string& exec_id) override;
  Task<places::CapturedTemplate> capture_template(const places::PlaceRef& lease,
                                                  const places::CaptureTemplate& request) override;
  Task<bool> delete_template(const places::PlaceRef& place,
                             const places::DeleteTemplate& request) override;
  Task<places::Changes> changes(const places::PlaceRef& lease) override;
  Task<> freeze(const places::PlaceRef& lease) override;
  Task<> thaw(const places::PlaceRef& lease) override;
  Task<std::vector<core::TemplateId>> held_templates() override;

  Result<> expect_willing(const places::PlaceRef& lease) const;
  void note(std::string_view verb, const places::PlaceRef& lease);

  places::Commands& processes_;
  places::Place& homes_;  // their folders
  int last_ = 0;
};

}  // namespace berth::engine
