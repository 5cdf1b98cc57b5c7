#pragma once

#include "drivers/driver.hpp"

#include <functional>
#include <set>

namespace berth::engine {

// Sandboxes for tests: each has an id of its own and is there until it is destroyed; what runs in
// them are processes of this machine. Verbs can be made to fail.
class Boxes final : public drivers::Driver {
 public:
  explicit Boxes(drivers::Driver& processes) : processes_(processes) {}

  std::set<std::string> there;    // ids of those that are alive
  std::set<std::string> refused;  // ids whose end is refused; "" refuses every one
  bool refuses_to_acquire = false;
  // As a provider of a plugin: a box is known by the name that acquire answers, and by that alone.
  bool finds_by_answer = false;
  bool names_by_run = false;  // an acquire that is repeated gives the same box
  // One box for all who ask for reuse in an environment, as providers of containers have it.
  bool names_by_environment = false;
  bool has_one_box = false;  // which it gives to everybody, whatever is asked for
  int answers_to_lose = 0;   // acquires that make a box, and of which nobody hears
  // Happens once, when the next box is made and nobody has heard of it yet.
  std::function<Task<>()> meanwhile;
  bool refuses_in_words = false;
  int captures_to_lose = 0;
  std::set<std::string> missing_images;  // that no config may name when it is saved
  std::set<std::string> templates;       // references to what was captured and not deleted
  std::set<std::string> frozen;          // ids of those that stand still
  bool refuses_to_capture = false;
  bool refuses_to_delete = false;
  std::optional<Time> expires_at;          // of the next lease
  std::optional<std::string> signal_told;  // of every command, in place of its own
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
