#include "plugins/gate.hpp"

#include "base/json/peek.hpp"

#include <algorithm>
#include <array>

namespace berth::plugins {
namespace {

struct Method {
  std::string_view name;
  std::string_view capability;  // empty: none is needed
};
// Every method that the protocol lets a worker request.
constexpr auto gated_methods = std::to_array<Method>({
    {"config.get", ""},
    {"localFolders.declarations", ""},
    {"localFolders.configure", "local.folders"},
    {"localFolders.status", "local.folders"},
    {"localFolders.list", "local.folders"},
    {"localFolders.readText", "local.folders"},
    {"localFolders.writeTextAtomic", "local.folders"},
    {"localFolders.deleteFile", "local.folders"},
    {"state.get", "plugin.state.read"},
    {"state.set", "plugin.state.write"},
    {"state.delete", "plugin.state.write"},
    {"db.namespace", "database.namespace.read"},
    {"db.query", "database.namespace.read"},
    {"db.execute", "database.namespace.write"},
    {"entities.upsert", ""},
    {"entities.list", ""},
    {"events.emit", "events.emit"},
    {"events.subscribe", "events.subscribe"},
    {"http.fetch", "http.outbound"},
    {"secrets.resolve", "secrets.read-ref"},
    {"activity.log", "activity.log.write"},
    {"metrics.write", "metrics.write"},
    {"telemetry.track", "telemetry.track"},
    {"log", ""},
    {"span.record", "environment.drivers.register"},
    {"companies.list", "companies.read"},
    {"companies.get", "companies.read"},
    {"projects.list", "projects.read"},
    {"projects.get", "projects.read"},
    {"projects.listWorkspaces", "project.workspaces.read"},
    {"projects.getPrimaryWorkspace", "project.workspaces.read"},
    {"projects.getWorkspaceForIssue", "project.workspaces.read"},
    {"executionWorkspaces.get", "execution.workspaces.read"},
    {"projects.managed.get", "projects.managed"},
    {"projects.managed.reconcile", "projects.managed"},
    {"projects.managed.reset", "projects.managed"},
    {"routines.managed.get", "routines.managed"},
    {"routines.managed.reconcile", "routines.managed"},
    {"routines.managed.reset", "routines.managed"},
    {"routines.managed.update", "routines.managed"},
    {"routines.managed.run", "routines.managed"},
    {"skills.managed.get", "skills.managed"},
    {"skills.managed.reconcile", "skills.managed"},
    {"skills.managed.reset", "skills.managed"},
    {"issues.list", "issues.read"},
    {"issues.get", "issues.read"},
    {"issues.create", "issues.create"},
    {"issues.update", "issues.update"},
    {"issues.relations.get", "issue.relations.read"},
    {"issues.relations.setBlockedBy", "issue.relations.write"},
    {"issues.relations.addBlockers", "issue.relations.write"},
    {"issues.relations.removeBlockers", "issue.relations.write"},
    {"issues.assertCheckoutOwner", "issues.checkout"},
    {"issues.getSubtree", "issue.subtree.read"},
    {"issues.requestWakeup", "issues.wakeup"},
    {"issues.requestWakeups", "issues.wakeup"},
    {"issues.summaries.getOrchestration", "issues.orchestration.read"},
    {"issues.listComments", "issue.comments.read"},
    {"issues.createComment", "issue.comments.create"},
    {"issues.createInteraction", "issue.interactions.create"},
    {"issues.listInteractions", "issue.interactions.read"},
    {"issues.respondInteraction", "issue.interactions.respond"},
    {"issues.listAttachments", "issue.attachments.read"},
    {"issues.getAttachmentContent", "issue.attachments.read"},
    {"issues.documents.list", "issue.documents.read"},
    {"issues.documents.get", "issue.documents.read"},
    {"issues.documents.upsert", "issue.documents.write"},
    {"issues.documents.delete", "issue.documents.write"},
    {"approvals.list", "approvals.read"},
    {"approvals.get", "approvals.read"},
    {"approvals.decide", "approvals.respond"},
    {"agents.list", "agents.read"},
    {"agents.get", "agents.read"},
    {"agents.pause", "agents.pause"},
    {"agents.resume", "agents.resume"},
    {"agents.invoke", "agents.invoke"},
    {"agents.managed.get", "agents.managed"},
    {"agents.managed.reconcile", "agents.managed"},
    {"agents.managed.reset", "agents.managed"},
    {"agents.sessions.create", "agent.sessions.create"},
    {"agents.sessions.list", "agent.sessions.list"},
    {"agents.sessions.sendMessage", "agent.sessions.send"},
    {"agents.sessions.close", "agent.sessions.close"},
    {"goals.list", "goals.read"},
    {"goals.get", "goals.read"},
    {"goals.create", "goals.create"},
    {"goals.update", "goals.update"},
    {"access.members.list", "access.members.read"},
    {"access.members.get", "access.members.read"},
    {"access.members.update", "access.members.write"},
    {"access.invites.list", "access.invites.read"},
    {"access.invites.create", "access.invites.write"},
    {"access.invites.revoke", "access.invites.write"},
    {"authorization.grants.list", "authorization.grants.read"},
    {"authorization.grants.set", "authorization.grants.write"},
    {"authorization.policies.summary", "authorization.policies.read"},
    {"authorization.policies.get", "authorization.policies.read"},
    {"authorization.policies.update", "authorization.policies.write"},
    {"authorization.policies.previewAssignment", "authorization.policies.read"},
    {"authorization.policies.explainAssignment", "authorization.policies.read"},
    {"authorization.audit.search", "authorization.audit.read"},
});

constexpr std::string_view as_a_person = "issue.comments.create_human_attributed";

const bj::object& request_params(const Request& request) {
  static const bj::object none;
  return request.params.is_object() ? request.params.get_object() : none;
}

// The one company that the params name, or that they name a company without an id.
struct Named {
  std::optional<std::string> company = {};
  bool nameless = false;
};

Named company_named(const Request& request) {
  const bj::object& params = request_params(request);
  if (auto direct = text_in(params, "companyId"); direct && !direct->empty()) return {direct};
  if (text_in(params, "scopeKind") == "company") {
    auto scope = text_in(params, "scopeId");
    const bool missing = !scope || scope->empty();
    return {.company = missing ? std::nullopt : scope, .nameless = missing};
  }
  const bj::object* filter = object_in(params, "filter");
  if (request.method == "events.subscribe" && filter != nullptr) {
    return {text_in(*filter, "companyId")};
  }
  return {};
}

RpcError scope_denied(const Request& request, const Manifest& manifest, std::string why) {
  return {rpc_code::scope_denied, "Plugin \"" + manifest.id + "\" may not call \"" +
                                      request.method + "\": " + std::move(why)};
}

RpcError capability_denied(const Request& request, const Manifest& manifest,
                           std::string_view capability) {
  return {rpc_code::capability_denied,
          "Plugin \"" + manifest.id + "\" is missing required capability \"" +
              std::string{capability} + "\" for method \"" + request.method + "\""};
}

}  // namespace

InvocationContext context_of(const Request& request, const OpenInvocations& open) {
  if (request.invocation_id) {
    const auto found = open.companies.find(*request.invocation_id);
    if (found == open.companies.end()) return {.valid = false};
    return {.company = found->second};
  }
  const Named named = company_named(request);
  if (named.company && open.configured.contains(*named.company)) return {.company = named.company};
  return {.valid = open.companies.empty()};
}

std::expected<std::optional<std::string>, RpcError> admit(const Request& request,
                                                          const Manifest& manifest,
                                                          const InvocationContext& context) {
  const auto* method = std::ranges::find(gated_methods, request.method, &Method::name);
  if (method == gated_methods.end()) {
    return std::unexpected(
        RpcError{rpc_code::method_not_found, "The host has no method \"" + request.method + "\""});
  }
  if (!method->capability.empty() && !manifest.has_capability(method->capability)) {
    return std::unexpected(capability_denied(request, manifest, method->capability));
  }
  if (method->name == "issues.createComment" && request_params(request).contains("actorUserId") &&
      !manifest.has_capability(as_a_person)) {
    return std::unexpected(capability_denied(request, manifest, as_a_person));
  }
  if (method->name == "companies.list") return context.company;
  const auto deny = [&](std::string why) {
    return std::unexpected(scope_denied(request, manifest, std::move(why)));
  };
  const Named named = company_named(request);
  const bool needs_company = method->name == "config.get" || method->name == "secrets.resolve";
  if (named.nameless) return deny("company context is required");
  if (!named.company && !needs_company) return context.company;
  if (!context.valid) {
    return deny("the worker referenced a missing, expired, or unknown invocation scope");
  }
  if (!context.company) return deny("company context is required");
  if (named.company && *named.company != *context.company) {
    return deny("requested company \"" + *named.company +
                "\" but the current invocation is scoped to company \"" + *context.company + "\"");
  }
  return context.company;
}

}  // namespace berth::plugins
