#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

// The permission that a route requires. `agent_invoke` is for operators, and for an agent that
// starts itself; may_invoke checks which agent.
BOOST_DEFINE_ENUM_CLASS(Permission, open, signed_in, company_read, company_operate, company_admin,
                        agent_self, agent_invoke, instance_admin)

// The identity behind a request. A run-bound agent is the agent of one run. `system` is the server
// itself, acting for a run or on its own; no request arrives as `system`.
BOOST_DEFINE_ENUM_CLASS(CallerKind, nobody, local_operator, operator_key, agent_key, system)

// The caller of a request. The company limits everything this caller can see; only instance
// administrators have none.
struct Caller {
  CallerKind kind = CallerKind::nobody;
  Role role = Role::viewer;
  std::optional<CompanyId> company_id = {};
  std::optional<AgentId> agent_id = {};
  std::optional<TokenId> token_id = {};
  std::optional<RunId> run_id = {};  // the only run that an agent may act for with this token
  // For an agent: the operator who created its key, or who is responsible for its run.
  std::optional<std::string> on_behalf_of = {};

  bool is_instance_admin() const;
  ActorType actor_type() const;
  std::string actor_id() const;
  // The user responsible for what this caller starts: the operator, or the operator behind an
  // agent. Absent when unknown, and for the server itself.
  std::optional<std::string> responsible_user() const;
};

// Whether this kind of caller in this role has the permission at all, regardless of the object. The
// table is tested exhaustively.
bool permits(CallerKind kind, Role role, bool instance_wide, Permission needed);
// The same for a caller; the error reports what is missing (unauthenticated or forbidden).
Result<> authorize(const Caller& caller, Permission needed);
// An agent may start only itself; an operator of the company may start any agent.
Result<> may_invoke(const Caller& caller, const AgentId& agent);

// The part of the store that a caller can see: one company, or everything. Every query by id takes
// a Reach.
class Reach {
 public:
  static Reach of(const Caller& caller);
  static Reach everything() { return Reach{""}; }
  static Reach only(const CompanyId& company) { return Reach{company.str()}; }
  bool covers(const CompanyId& company) const {
    return company_.empty() || company_ == company.str();
  }
  // For SQL: `($2 = '' or company_id = $2)`.
  const std::string& sql() const { return company_; }

 private:
  explicit Reach(std::string company) : company_(std::move(company)) {}
  std::string company_;
};

// Whether this caller may see the config and metadata of environments and agents. Viewers and
// agents get them blank.
bool sees_config(const Caller& caller);

}  // namespace berth::core
