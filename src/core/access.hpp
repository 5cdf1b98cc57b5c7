#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

// What a route needs of its caller. `agent_invoke` is for operators and for an agent about itself;
// may_invoke says which agent.
BOOST_DEFINE_ENUM_CLASS(Permission, open, signed_in, company_read, company_operate, company_admin,
                        agent_self, agent_invoke, instance_admin)

// What a request is made as. A run-bound agent is the agent of one run; `system` is the server
// itself, at work for a run or on its own: no request comes as it.
BOOST_DEFINE_ENUM_CLASS(CallerKind, nobody, local_operator, operator_key, agent_key, system)

// Who is asking. The company is the border of everything this caller can see; only instance
// administrators have none.
struct Caller {
  CallerKind kind = CallerKind::nobody;
  Role role = Role::viewer;
  std::optional<CompanyId> company_id = {};
  std::optional<AgentId> agent_id = {};
  std::optional<TokenId> token_id = {};
  std::optional<RunId> run_id = {};  // the one run for which an agent may speak with this token
  // Of an agent: the operator who made its key, or who answers for its run.
  std::optional<std::string> on_behalf_of = {};

  bool is_instance_admin() const;
  ActorType actor_type() const;
  std::string actor_id() const;
  // Who answers for what this caller starts: an operator, or the one behind an agent. Absent where
  // nobody is known, and for the server itself.
  std::optional<std::string> responsible_user() const;
};

// Whether this kind of caller in this role may do it at all, whatever the object: a table, tested
// exhaustively.
bool permits(CallerKind kind, Role role, bool instance_wide, Permission needed);
// The same for a caller; the error says what is missing (unauthenticated or forbidden).
Result<> authorize(const Caller& caller, Permission needed);
// An agent starts itself and no other; whoever operates the company starts any.
Result<> may_invoke(const Caller& caller, const AgentId& agent);

// The part of the store that a caller can see: one company, or everything. Every query by id takes
// one.
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

// May this caller see config and metadata of environments and agents? Viewers and agents get them
// blank.
bool sees_config(const Caller& caller);

}  // namespace berth::core
