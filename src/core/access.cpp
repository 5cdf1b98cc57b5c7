#include "core/access.hpp"

namespace berth::core {
namespace {

// A caller without a company reaches nothing. This is not a UUID, so no company has this id.
constexpr auto no_company = "none";

bool operator_permits(Role role, bool instance_wide, Permission needed) {
  switch (needed) {
    case Permission::open:
    case Permission::signed_in:
    case Permission::company_read: return true;
    case Permission::company_operate:
    case Permission::agent_invoke: return role != Role::viewer;
    case Permission::company_admin: return role == Role::admin;
    case Permission::agent_self: return false;
    case Permission::instance_admin: return role == Role::admin && instance_wide;
  }
  return false;
}

bool agent_permits(Permission needed) {
  return needed == Permission::open || needed == Permission::signed_in ||
         needed == Permission::company_read || needed == Permission::agent_self ||
         needed == Permission::agent_invoke;
}

}  // namespace

bool permits(CallerKind kind, Role role, bool instance_wide, Permission needed) {
  switch (kind) {
    case CallerKind::nobody: return needed == Permission::open;
    case CallerKind::local_operator: return needed != Permission::agent_self;
    case CallerKind::operator_key: return operator_permits(role, instance_wide, needed);
    case CallerKind::agent_key: return agent_permits(needed);
    case CallerKind::system: return needed == Permission::open;
  }
  return false;
}

Result<> authorize(const Caller& caller, Permission needed) {
  if (permits(caller.kind, caller.role, !caller.company_id, needed)) return {};
  if (caller.kind == CallerKind::nobody) {
    return fail(
        Errc::unauthenticated, "this request carries no valid credentials",
        "send 'Authorization: Bearer TOKEN'; an administrator makes one with 'berth token create'");
  }
  if (caller.kind == CallerKind::agent_key) {
    return fail(Errc::forbidden, "an agent key may not do this", "use an operator key");
  }
  if (needed == Permission::agent_self) {
    return fail(Errc::forbidden, "only an agent may ask about itself", "use the key of an agent");
  }
  if (needed == Permission::instance_admin) {
    return fail(Errc::forbidden, "this needs an instance administrator",
                "use an admin key that is not bound to one company");
  }
  return fail(Errc::forbidden,
              needed == Permission::company_admin ? "this needs the role admin"
                                                  : "the role viewer is read-only",
              "use a key with a higher role");
}

Result<> may_invoke(const Caller& caller, const AgentId& agent) {
  BERTH_DO(authorize(caller, Permission::agent_invoke));
  if (caller.kind != CallerKind::agent_key || caller.agent_id == agent) return {};
  return fail(Errc::forbidden, "an agent may start only itself, not agent " + agent.str(),
              "use an operator key");
}

bool Caller::is_instance_admin() const {
  return permits(kind, role, !company_id, Permission::instance_admin);
}

ActorType Caller::actor_type() const {
  if (kind == CallerKind::system) return ActorType::system;
  return kind == CallerKind::agent_key ? ActorType::agent : ActorType::user;
}

std::string Caller::actor_id() const {
  if (agent_id) return agent_id->str();
  if (token_id) return "token:" + token_id->str();
  return kind == CallerKind::system ? "system" : "local-board";
}

std::optional<std::string> Caller::responsible_user() const {
  const bool is_operator = kind == CallerKind::local_operator || kind == CallerKind::operator_key;
  return is_operator ? actor_id() : on_behalf_of;
}

Reach Reach::of(const Caller& caller) {
  if (!permits(caller.kind, caller.role, !caller.company_id, Permission::company_read)) {
    return Reach{no_company};
  }
  if (caller.company_id) return only(*caller.company_id);
  return caller.is_instance_admin() ? everything() : Reach{no_company};
}

bool sees_config(const Caller& caller) {
  return permits(caller.kind, caller.role, !caller.company_id, Permission::company_operate);
}

}  // namespace berth::core
