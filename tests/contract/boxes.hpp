#pragma once

#include "places/place.hpp"

#include <functional>
#include <set>

namespace berth::engine {

// Sandboxes for tests: each has its own id and exists until it is destroyed; their commands are
// processes on this machine. Verbs can be made to fail.
class Boxes final : public drivers::Driver {
 public:
  explicit Boxes(drivers::Driver& processes) : processes_(processes) {}

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

  Task<drivers::ProbeReport> probe(const drivers::AcquireRequest& request) override;
  Task<> check_config(const bj::object& config) override;
  Task<drivers::Acquired> acquire(const drivers::AcquireRequest& request) override;
  bool finds_by_key(const bj::object& /*config*/) const override { return !finds_by_answer; }
  Task<drivers::Workspace> realize(const drivers::PlaceRef& lease,
                                   const std::optional<std::string>& wanted) override;
  Task<drivers::Started> start(const drivers::PlaceRef& lease,
                               const drivers::Command& command) override;
  Task<drivers::Ended> follow(const drivers::PlaceRef& lease, const std::string& exec_id,
                              std::uint64_t offset, drivers::OutputTaker& taker) override;
  Task<> send(const drivers::PlaceRef& lease, const std::string& exec_id,
              drivers::Input input) override;
  Task<> cancel(const drivers::PlaceRef& lease, const std::string& exec_id,
                std::int64_t grace_ms) override;
  Task<> renew(const drivers::PlaceRef& lease, std::int64_t deadline_ms) override;
  Task<> release(const drivers::PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const drivers::PlaceRef& lease) override;
  Task<execution::CapturedTemplate> capture_template(
      const drivers::PlaceRef& lease, const execution::CaptureTemplate& request) override;
  Task<bool> delete_template(const drivers::PlaceRef& place,
                             const execution::DeleteTemplate& request) override;
  Task<execution::Changes> changes(const drivers::PlaceRef& lease) override;
  Task<> freeze(const drivers::PlaceRef& lease) override;
  Task<> thaw(const drivers::PlaceRef& lease) override;

 private:
  Result<> expect_willing(const drivers::PlaceRef& lease) const;
  void note(std::string_view verb, const drivers::PlaceRef& lease);

  drivers::Driver& processes_;
  int last_ = 0;
};

}  // namespace berth::engine
