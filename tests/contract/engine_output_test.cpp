#include "contract/engine_fixture.hpp"
#include "engine/runs/run_output.hpp"
#include "engine/upkeep/janitor.hpp"
#include "store/retention.hpp"
#include "store/runs.hpp"

// Output that a hostile host sends: its keeper may write any records.
namespace berth::engine {
namespace {

using places::OutputKind;
using places::OutputPiece;

class HostileOutputTest : public EngineContract {
 protected:
  void SetUp() override {
    EngineContract::SetUp();
    if (IsSkipped()) return;
    node_ = given_node();
    run_ = StoreContract::run(given_company("Acme").id);
    EXPECT_WORKS(write([&](store::Session& s) { return store::insert_run(s, *run_); }));
  }

  RunOutput output() {
    return {engine_->services,
            *logs_,
            *run_,
            node_->id,
            core::AgentOutput{core::AdapterType::process},
            0};
  }
  static std::vector<OutputPiece> notes(std::string_view text, std::size_t count, Time at) {
    return std::vector<OutputPiece>(count,
                                    OutputPiece{.kind = OutputKind::note, .at = at, .bytes = text});
  }

  std::optional<core::Node> node_;
  std::optional<core::Run> run_;
};
BERTH_ON_BOTH_ENGINES(HostileOutputTest);

TEST_P(HostileOutputTest, StoresFewAndShortNotes) {
  RunOutput hostile = output();
  const std::string text(std::size_t{1} << 16, 'x');
  EXPECT_WORKS(run(hostile.take(notes(text, 300, now()))));
  EXPECT_EQ(number("select count(*) from heartbeat_run_events"), 100);
  EXPECT_LE(number("select max(length(message)) from heartbeat_run_events"), 1024);
}

TEST_P(HostileOutputTest, HidesSecretsInNotes) {
  RunOutput hostile = output();
  hostile.hide(Secret{"correct horse"});
  EXPECT_WORKS(run(hostile.take(notes("a correct horse", 1, now()))));
  EXPECT_EQ(number("select count(*) from heartbeat_run_events where message like '%horse%'"), 0);
  EXPECT_EQ(number("select count(*) from heartbeat_run_events where message like 'a ***%'"), 1);
}

TEST_P(HostileOutputTest, CannotDateAnEventIntoTheFuture) {
  RunOutput hostile = output();
  EXPECT_WORKS(run(hostile.take(notes("later", 1, now() + 1'000'000'000'000))));
  EXPECT_EQ(number("select max(created_at) from heartbeat_run_events"), now().ms);
}

}  // namespace
}  // namespace berth::engine
