#include "base/base64.hpp"
#include "base/files.hpp"
#include "base/remove_tree.hpp"
#include "plugin_kit/checks.hpp"

#include <boost/json/serialize.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace berth::plugin_kit {
namespace {

std::string status_of(const bj::value& answer) {
  return answer.is_object() ? text_at(answer.get_object(), "status") : std::string{};
}

Outcome resumes(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.acquire(bench.fresh_id()));
  bj::object named{{"providerLeaseId", lease.at("providerLeaseId")}};
  if (lease.contains("metadata")) named["leaseMetadata"] = lease.at("metadata");
  BERTH_CHECK_TRY(const bj::value resumed, bench.ask("environmentResumeLease", named));
  BERTH_CHECK_THAT(resumed.is_object() && text_at(resumed.get_object(), "providerLeaseId") ==
                                              text_at(lease, "providerLeaseId"),
                   "the resumed lease is another one: " + bj::serialize(resumed).substr(0, 200));
  BERTH_CHECK_DO(bench.destroy_and_look(lease));
  // The response for a deleted sandbox has no id or names a new sandbox. It is never an error.
  const auto gone = bench.ask("environmentResumeLease", named);
  if (!gone)
    return failed("a lease that is gone was resumed with an error: " + gone.error().message);
  BERTH_CHECK_THAT(gone->is_object(), "a lease that is gone was resumed with no object");
  if (!text_at(gone->get_object(), "providerLeaseId").empty()) {
    BERTH_CHECK_DO(bench.destroy(gone->get_object()));
  }
  return passed();
}

// A folder on this machine with something to send, removed with its owner.
class Parcel {
 public:
  Parcel() {
    std::string name = "/tmp/berth-conformance-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
  ~Parcel() {
    if (!path_.empty()) (void)remove_tree(path_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<> sync(Bench& bench, const std::string& method, const bj::object& lease,
              const bj::array& files) {
  const bj::object operation{{"operationId", "op-1"}, {"files", files}};
  BERTH_TRY(const bj::value answer,
            bench.ask(method, {{"lease", lease}, {"operations", bj::array{operation}}}));
  const bj::object* object = answer.if_object();
  const bj::value* done = object != nullptr ? object->if_contains("operations") : nullptr;
  if (done == nullptr || !done->is_array() || done->get_array().size() != 1 ||
      !done->get_array()[0].is_object() ||
      text_at(done->get_array()[0].get_object(), "operationId") != "op-1") {
    return fail(Errc::plugin_protocol,
                method + " did not answer for its operation: " + bj::serialize(answer));
  }
  return {};
}

bj::object mapping(const std::string& from, const std::string& to, std::string_view kind) {
  return {{"sourcePath", from}, {"targetPath", to}, {"kind", kind}};
}

Outcome carries_files(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  const Parcel parcel;
  const std::string text = "first\n\xE2\x80\xA8second\n";
  BERTH_CHECK_DO(make_directories(parcel.path() + "/folder/deep", 0755));
  BERTH_CHECK_DO(create_file(parcel.path() + "/file", text, 0600));
  BERTH_CHECK_DO(create_file(parcel.path() + "/folder/deep/inner", "inner", 0755));
  const std::string there = bench.cwd_of(lease) + "/conformance";
  BERTH_CHECK_DO(bench.execute(lease, {{"command", "mkdir"}, {"args", bj::array{"-p", there}}}));
  bj::object file = mapping(parcel.path() + "/file", there + "/file", "file");
  file["mode"] = 0640;
  BERTH_CHECK_DO(sync(bench, "environmentSyncIn", lease,
                      {file, mapping(parcel.path() + "/folder", there + "/folder", "directory")}));
  BERTH_CHECK_TRY(
      const bj::object seen,
      bench.execute(lease, {{"command", "sh"},
                            {"args", bj::array{"-c", "cat file folder/deep/inner; ls -l file"}},
                            {"cwd", there}}));
  BERTH_CHECK_THAT(text_at(seen, "stdout").starts_with(text + "inner-rw-r-----"),
                   "what arrived is " + text_at(seen, "stdout").substr(0, 200));
  BERTH_CHECK_DO(sync(bench, "environmentSyncOut", lease,
                      {mapping(there + "/file", parcel.path() + "/back", "file"),
                       mapping(there + "/folder", parcel.path() + "/folder-back", "directory")}));
  BERTH_CHECK_TRY(const std::string back, read_file(parcel.path() + "/back", 1 << 20));
  BERTH_CHECK_TRY(const std::string inner,
                  read_file(parcel.path() + "/folder-back/deep/inner", 1 << 20));
  BERTH_CHECK_THAT(back == text && inner == "inner", "what came back is not what was sent");
  return passed();
}

Outcome sets_up(Bench& bench) {
  const std::string session = bench.fresh_id();
  BERTH_CHECK_TRY(const bj::value opened,
                  bench.ask("environmentStartInteractiveSetup",
                            {{"sessionId", session}, {"connectionExpiresInMinutes", 15}}));
  BERTH_CHECK_THAT(opened.is_object(), "the setup was answered with no object");
  const std::string id = text_at(opened.get_object(), "providerLeaseId");
  constexpr std::array<std::string_view, 8> known{"starting", "waiting_for_user", "capturing",
                                                  "promoted", "cancelled",        "timed_out",
                                                  "failed",   "missing"};
  BERTH_CHECK_THAT(std::ranges::find(known, status_of(opened)) != known.end(),
                   "the status '" + status_of(opened) + "' is none of the protocol");
  BERTH_CHECK_THAT(!id.empty(), "the setup has no providerLeaseId");
  const bj::object named{{"providerLeaseId", id}};
  BERTH_CHECK_TRY(const bj::value seen, bench.ask("environmentGetInteractiveSetup", named));
  BERTH_CHECK_THAT(status_of(seen) == "starting" || status_of(seen) == "waiting_for_user",
                   "an open setup has the status '" + status_of(seen) + "'");
  BERTH_CHECK_TRY(const bj::value ended, bench.ask("environmentCancelInteractiveSetup", named));
  BERTH_CHECK_THAT(status_of(ended) == "cancelled",
                   "a cancelled setup has the status '" + status_of(ended) + "'");
  BERTH_CHECK_TRY(const bj::value again, bench.ask("environmentCancelInteractiveSetup", named));
  BERTH_CHECK_THAT(!status_of(again).empty(), "a second cancel was answered without a status");
  return passed();
}

Outcome captures(Bench& bench) {
  BERTH_CHECK_TRY(const bj::value opened,
                  bench.ask("environmentStartInteractiveSetup",
                            {{"sessionId", bench.fresh_id()}, {"connectionExpiresInMinutes", 15}}));
  BERTH_CHECK_THAT(opened.is_object(), "the setup was answered with no object");
  const bj::object named{{"providerLeaseId", text_at(opened.get_object(), "providerLeaseId")}};
  const auto captured = bench.ask("environmentCaptureTemplate", named);
  // Whatever was captured, the setup itself must be removed.
  const auto cancelled = bench.has("environmentCancelInteractiveSetup")
                             ? bench.ask("environmentCancelInteractiveSetup", named)
                             : Result<bj::value>{nullptr};
  BERTH_CHECK_DO(captured);
  BERTH_CHECK_DO(cancelled);
  BERTH_CHECK_THAT(captured->is_object() &&
                       !text_at(captured->get_object(), "templateRef").empty() &&
                       !text_at(captured->get_object(), "templateKind").empty(),
                   "the capture was answered with " + bj::serialize(*captured).substr(0, 200));
  if (!bench.has("environmentDeleteTemplate")) return passed();
  const bj::object wanted{{"templateRef", captured->get_object().at("templateRef")},
                          {"templateKind", captured->get_object().at("templateKind")}};
  BERTH_CHECK_TRY(const bj::value deleted, bench.ask("environmentDeleteTemplate", wanted));
  const bj::value* flag =
      deleted.is_object() ? deleted.get_object().if_contains("deleted") : nullptr;
  BERTH_CHECK_THAT(flag != nullptr && flag->is_bool() && flag->get_bool(),
                   "the template was not deleted: " + bj::serialize(deleted));
  return passed();
}

Outcome carries_bytes(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  const std::string route = "duplex-route-" + bench.fresh_id();
  const std::string sent = "ping\xC3\xA9\n";
  BERTH_CHECK_TRY(const bj::value opened,
                  bench.ask("duplexChannelOpen", {{"hostRouteId", route},
                                                  {"providerLeaseId", lease.at("providerLeaseId")},
                                                  {"command", bj::array{"cat"}}}));
  BERTH_CHECK_THAT(opened.is_object() && text_at(opened.get_object(), "hostRouteId") == route,
                   "the open did not echo hostRouteId");
  const std::string session = text_at(opened.get_object(), "workerSessionId");
  const bj::object pair{{"hostRouteId", route}, {"workerSessionId", session}};
  bj::object write = pair;
  write["data"] = base64(sent);
  BERTH_CHECK_DO(bench.ask("duplexChannelWrite", write));
  std::string came;
  const auto has_come = [&] {
    came.clear();
    for (const bj::object& heard : worker->notifications) {
      if (text_at(heard, "method") != "duplexChannel.data" || !heard.at("params").is_object()) {
        continue;
      }
      const bj::object& params = heard.at("params").get_object();
      if (text_at(params, "hostRouteId") != route) continue;
      const std::string chunk = text_at(params, "chunk");
      came += parse_base64(chunk).value_or(chunk);
    }
    return came.size() >= sent.size();
  };
  worker->read_until(has_come, quick);
  BERTH_CHECK_DO(bench.ask("duplexChannelStop", pair));
  BERTH_CHECK_TRY(const bj::value closed,
                  bench.ask("duplexChannelClose", {{"hostRouteId", route}}));
  BERTH_CHECK_THAT(came == sent, "cat in the sandbox gave back '" + came + "'");
  BERTH_CHECK_THAT(closed.is_object() && text_at(closed.get_object(), "hostRouteId") == route &&
                       text_at(closed.get_object(), "workerSessionId") == session,
                   "the close was not acknowledged with both ids: " + bj::serialize(closed));
  return passed();
}

// Whether the sandbox has such a program does not matter; that the terminal closes does.
Outcome closes_terminals(Bench& bench, const std::string& prefix) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  const bool is_new = prefix == "loginPty";
  const std::string route = bench.fresh_id();
  bj::object open{{"hostRouteId", route}, {"providerLeaseId", lease.at("providerLeaseId")}};
  if (is_new) {
    open["loginCommandKey"] = "claude";
    open["sessionHome"] = "/tmp/paperclip-adapter-login/" + route;
  } else {
    open["command"] = "claude setup-token";
  }
  (void)bench.ask(prefix + "Open", open);
  BERTH_CHECK_TRY(const bj::value closed, bench.ask(prefix + "Close", {{"hostRouteId", route}}));
  BERTH_CHECK_THAT(closed.is_object() && text_at(closed.get_object(), "hostRouteId") == route,
                   "the close was not acknowledged with its hostRouteId");
  return passed();
}

}  // namespace

std::vector<Check> optional_checks() {
  std::vector<Check> checks{
      {"resume.lease",
       "resume gives the same lease, and says without an error when it is gone",
       "answer {providerLeaseId: null} for a sandbox that is gone",
       resumes,
       Weight::required,
       {"environmentAcquireLease", "environmentResumeLease"}},
      {"sync.files",
       "files and folders go in and come back as they were",
       "copy content and mode, replace files whole, answer for each operation",
       carries_files,
       Weight::required,
       {"environmentAcquireLease", "environmentExecute", "environmentSyncIn",
        "environmentSyncOut"}},
      {"setup.session",
       "a setup session opens, is seen and is cancelled",
       "answer with a status of the protocol; cancel is to be repeatable",
       sets_up,
       Weight::required,
       {"environmentStartInteractiveSetup", "environmentGetInteractiveSetup",
        "environmentCancelInteractiveSetup"}},
      {"setup.template",
       "a setup becomes a template, which can be deleted",
       "answer {templateRef, templateKind} and {deleted: true}",
       captures,
       Weight::required,
       {"environmentStartInteractiveSetup", "environmentCaptureTemplate"}},
      {"duplex.bytes",
       "bytes go both ways through a channel, and its close is acknowledged",
       "echo both ids; chunks are base64 of the bytes",
       carries_bytes,
       Weight::required,
       {"environmentAcquireLease", "duplexChannelOpen", "duplexChannelWrite", "duplexChannelStop",
        "duplexChannelClose"}},
  };
  for (const std::string prefix : {"loginPty", "setupTokenPty"}) {
    checks.push_back({"terminal." + prefix + "Open",
                      "a terminal is closed by its hostRouteId",
                      "acknowledge a close also when the open failed: {hostRouteId}",
                      [prefix](Bench& bench) { return closes_terminals(bench, prefix); },
                      Weight::required,
                      {"environmentAcquireLease", prefix + "Open"}});
  }
  return checks;
}

}  // namespace berth::plugin_kit
