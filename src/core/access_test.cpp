#include "core/access.hpp"

#include <gtest/gtest.h>

#include <set>

namespace berth::core {
namespace {

using Permissions = std::set<Permission>;

const CompanyId ours = *CompanyId::parse("0190b5d2-0000-7000-8000-000000000001");
const CompanyId theirs = *CompanyId::parse("0190b5d2-0000-7000-8000-000000000002");
const CompanyId zero = *CompanyId::parse("00000000-0000-0000-0000-000000000000");
const AgentId agent = *AgentId::parse("0190b5d2-0000-7000-8000-000000000003");
const TokenId token = *TokenId::parse("0190b5d2-0000-7000-8000-000000000004");

const Permissions reading{Permission::open, Permission::signed_in, Permission::company_read};

Permissions plus(Permissions some, std::initializer_list<Permission> more) {
  some.insert(more);
  return some;
}

// The permissions as a person would list them.
Permissions expected(CallerKind kind, Role role, bool instance_wide) {
  switch (kind) {
    case CallerKind::nobody:
    case CallerKind::system: return {Permission::open};
    case CallerKind::agent_key:
      return plus(reading, {Permission::agent_self, Permission::agent_invoke});
    case CallerKind::local_operator:
      return plus(reading, {Permission::company_operate, Permission::agent_invoke,
                            Permission::company_admin, Permission::instance_admin});
    case CallerKind::operator_key: break;
  }
  if (role == Role::viewer) return reading;
  const Permissions operating =
      plus(reading, {Permission::company_operate, Permission::agent_invoke});
  if (role == Role::operator_) return operating;
  const Permissions admin = plus(operating, {Permission::company_admin});
  return instance_wide ? plus(admin, {Permission::instance_admin}) : admin;
}

Caller operator_key(Role role, std::optional<CompanyId> company) {
  return {.kind = CallerKind::operator_key, .role = role, .company_id = std::move(company)};
}

TEST(Permits, ExactlyWhatTheTableSays) {
  for (const CallerKind kind : all<CallerKind>()) {
    for (const Role role : all<Role>()) {
      for (const bool instance_wide : {false, true}) {
        for (const Permission needed : all<Permission>()) {
          EXPECT_EQ(permits(kind, role, instance_wide, needed),
                    expected(kind, role, instance_wide).contains(needed))
              << name_of(kind) << " " << name_of(role) << " wide=" << instance_wide << " "
              << name_of(needed);
        }
      }
    }
  }
}

TEST(Permits, AHigherRoleMayDoWhatALowerOneMay) {
  for (const bool wide : {false, true}) {
    for (const Permission needed : all<Permission>()) {
      const auto may = [&](Role role) {
        return permits(CallerKind::operator_key, role, wide, needed);
      };
      EXPECT_TRUE(!may(Role::viewer) || may(Role::operator_)) << name_of(needed);
      EXPECT_TRUE(!may(Role::operator_) || may(Role::admin)) << name_of(needed);
    }
  }
}

TEST(Authorize, AgreesWithPermitsForEveryCaller) {
  for (const CallerKind kind : all<CallerKind>()) {
    for (const Role role : all<Role>()) {
      for (const bool wide : {false, true}) {
        Caller caller{.kind = kind, .role = role};
        if (!wide) caller.company_id = ours;
        for (const Permission needed : all<Permission>()) {
          const Result<> done = authorize(caller, needed);
          ASSERT_EQ(done.has_value(), permits(kind, role, wide, needed));
          if (done) continue;
          const Errc code = kind == CallerKind::nobody ? Errc::unauthenticated : Errc::forbidden;
          EXPECT_EQ(done.error().code, code) << name_of(kind) << " " << name_of(needed);
          EXPECT_FALSE(done.error().message.empty());
          EXPECT_FALSE(done.error().remedy.empty());
        }
      }
    }
  }
}

TEST(Authorize, SaysWhatIsMissing) {
  const auto message = [](const Caller& caller, Permission needed) {
    return authorize(caller, needed).error().message;
  };
  const Caller as_agent{.kind = CallerKind::agent_key, .company_id = ours, .agent_id = agent};
  const Caller local{.kind = CallerKind::local_operator, .role = Role::admin};
  EXPECT_EQ(message({}, Permission::company_read), "this request carries no valid credentials");
  EXPECT_EQ(message(as_agent, Permission::company_operate), "an agent key may not do this");
  EXPECT_EQ(message(local, Permission::agent_self), "only an agent may ask about itself");
  EXPECT_EQ(message(operator_key(Role::viewer, ours), Permission::company_operate),
            "the role viewer is read-only");
  EXPECT_EQ(message(operator_key(Role::operator_, ours), Permission::company_admin),
            "this needs the role admin");
  EXPECT_EQ(message(operator_key(Role::admin, ours), Permission::instance_admin),
            "this needs an instance administrator");
}

TEST(MayInvoke, AnAgentStartsOnlyItselfAndAViewerNobody) {
  const AgentId other = *AgentId::parse("0190b5d2-0000-7000-8000-000000000005");
  const Caller as_agent{.kind = CallerKind::agent_key, .company_id = ours, .agent_id = agent};
  EXPECT_TRUE(may_invoke(as_agent, agent));
  EXPECT_EQ(may_invoke(as_agent, other).error().code, Errc::forbidden);
  EXPECT_TRUE(may_invoke(operator_key(Role::operator_, ours), other));
  EXPECT_TRUE(may_invoke({.kind = CallerKind::local_operator}, other));
  EXPECT_FALSE(may_invoke(operator_key(Role::viewer, ours), other));
  EXPECT_EQ(may_invoke({}, agent).error().code, Errc::unauthenticated);
}

TEST(Reach, OfACompanysCallerIsThatCompany) {
  for (const CallerKind kind :
       {CallerKind::local_operator, CallerKind::operator_key, CallerKind::agent_key}) {
    for (const Role role : all<Role>()) {
      const Reach reach = Reach::of({.kind = kind, .role = role, .company_id = ours});
      EXPECT_TRUE(reach.covers(ours)) << name_of(kind);
      EXPECT_FALSE(reach.covers(theirs)) << name_of(kind);
      EXPECT_EQ(reach.sql(), ours.str());
    }
  }
}

TEST(Reach, OfAnInstanceAdministratorIsEverything) {
  for (const Caller& caller :
       {operator_key(Role::admin, {}), Caller{.kind = CallerKind::local_operator}}) {
    const Reach reach = Reach::of(caller);
    EXPECT_TRUE(reach.covers(ours) && reach.covers(theirs));
    EXPECT_EQ(reach.sql(), "");
  }
}

TEST(Reach, OfAKeyWithoutCompanyThatIsNoAdministratorsIsNothing) {
  for (const Caller& caller : {operator_key(Role::viewer, {}), operator_key(Role::operator_, {}),
                               Caller{.kind = CallerKind::agent_key, .role = Role::admin}}) {
    const Reach reach = Reach::of(caller);
    for (const CompanyId& company : {ours, theirs, zero}) EXPECT_FALSE(reach.covers(company));
    EXPECT_NE(reach.sql(), "") << "the empty text means everything";
  }
}

TEST(Reach, OfNobodyIsNothingWhateverElseTheCallerHolds) {
  for (const Role role : all<Role>()) {
    for (const auto& company : {std::optional<CompanyId>{}, std::optional{ours}}) {
      const Reach reach =
          Reach::of({.kind = CallerKind::nobody, .role = role, .company_id = company});
      for (const CompanyId& other : {ours, theirs, zero}) EXPECT_FALSE(reach.covers(other));
      EXPECT_NE(reach.sql(), "");
      EXPECT_FALSE(is_uuid(reach.sql())) << "no row may ever match";
    }
  }
}

TEST(Caller, IsTheActorOfItsDeeds) {
  const Caller as_agent{.kind = CallerKind::agent_key, .agent_id = agent, .token_id = token};
  EXPECT_EQ(as_agent.actor_type(), ActorType::agent);
  EXPECT_EQ(as_agent.actor_id(), agent.str());
  const Caller with_key{.kind = CallerKind::operator_key, .token_id = token};
  EXPECT_EQ(with_key.actor_type(), ActorType::user);
  EXPECT_EQ(with_key.actor_id(), "token:" + token.str());
  EXPECT_EQ(Caller{.kind = CallerKind::local_operator}.actor_id(), "local-board");
}

TEST(SeesConfig, OnlyThoseWhoOperate) {
  EXPECT_TRUE(sees_config({.kind = CallerKind::local_operator}));
  EXPECT_TRUE(sees_config(operator_key(Role::admin, ours)));
  EXPECT_TRUE(sees_config(operator_key(Role::operator_, ours)));
  EXPECT_FALSE(sees_config(operator_key(Role::viewer, ours)));
  EXPECT_FALSE(sees_config({.kind = CallerKind::agent_key, .role = Role::admin}));
  EXPECT_FALSE(sees_config({}));
}

TEST(IsInstanceAdmin, NeedsAnAdminKeyOfNoCompany) {
  EXPECT_TRUE(operator_key(Role::admin, {}).is_instance_admin());
  EXPECT_FALSE(operator_key(Role::admin, ours).is_instance_admin());
  EXPECT_FALSE(operator_key(Role::operator_, {}).is_instance_admin());
  EXPECT_TRUE(Caller{.kind = CallerKind::local_operator}.is_instance_admin());
}

}  // namespace
}  // namespace berth::core
