#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/holder/held_exec.hpp"
#include "keeper/holder/loop.hpp"
#include "keeper/holder/session.hpp"
#include "keeper/protocol/exec_journal.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "keeper/sandbox/cell.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace berth::keeper {

// Prepares the calling process, and all that it forks, to be a keeper: sets the signals, hides its
// memory and raises the open-file limit to the maximum. Called once. Returns the previous limit.
rlimit prepare_to_hold();

// What a keeper starts with.
struct Origin {
  ProcessIdentity identity;                    // of the calling process
  rlimit open_files;                           // the limit for commands
  std::span<char> command_line;                // where a sandbox's first process writes its name
  std::unique_ptr<sandbox::Cell> unborn = {};  // a sandbox that waits for its plan
};

// Holds execs and answers clients until it is stopped, expires or loses its folder. One thread, one
// loop; the current directory is the state folder.
class Keeper final : public Outbox, public Session::Host {
 public:
  // Takes over the folder; `conflict` if another keeper has or had it. `first_client` may be empty.
  static Result<std::unique_ptr<Keeper>> open(const std::string& folder, Fd first_client,
                                              Origin origin);

  // Returns when nothing is left to hold.
  void run();
  // After run(): whether every process that it held is known to have ended.
  bool left_nobody() const { return end_record_.left_behind == 0 && (!cell_ || cell_->is_empty()); }

  void deliver(std::uint64_t client, std::string frame) override;
  void handle(Session& from, const Frame& frame) override;
  bool is_live(const std::string& exec_id) const override { return execs_.contains(exec_id); }
  bool is_known(const std::string& exec_id) const override;
  void answer_end(Address to, const std::string& exec_id) override;

 private:
  explicit Keeper(Origin origin);
  Result<> listen();
  Result<> watch_folder();
  void add_client(Fd socket);
  void accept();
  void take_signals();
  void look_at_folder();
  void turn();
  void end_frozen(HeldExec& exec, Outcome cause);
  void thaw();
  void freeze_again();
  void bury();
  void start_sync();
  void sync_records() const;
  bool is_warden(pid_t pid) const;
  void kill_orphans();
  void end_all(Outcome cause, std::string reason, std::uint64_t grace_ms);
  void say_goodbye();

  template <class Message>
  void act(Session& from, const Frame& frame);
  void on(Address from, const Hello& hello);
  void on(Address from, Exec exec);
  void on(Address from, Write write);
  void on(Address from, const CloseStdin& close);
  void on(Address from, const Signal& signal);
  void on(Address from, const Resize& resize);
  void on(Address from, const Attach& attach);
  void on(Address from, const Wait& wait);
  void on(Address from, const Stats& stats);
  void on(Address from, const Renew& renew);
  void on(Address from, const Cancel& cancel);
  void on(Address from, const Stop& stop);
  void on(Address from, const List& list);
  void on(Address from, const Confine& confine);
  void on(Address from, const Root& root);
  void on(Address from, const Listener& listener);
  void on(Address from, const Dial& dial);
  void on(Address from, const Freeze& freeze);
  void on(Address from, const Thaw& thaw);
  void on(Address from, const Empty& empty);
  void on(Address from, const Remake& remake);
  enum class Wanted : std::uint8_t { empty, remade };
  void begin_emptying(Address from, Wanted wanted);
  void empty_cell();
  Result<> remake_cell();
  Result<std::unique_ptr<sandbox::Cell>> make_cell(const sandbox::Plan& plan);
  Result<> note_groups(const sandbox::CgroupLayout& layout);
  // The sandbox, or nullptr after a refusal was sent.
  sandbox::Cell* cell(Address to);
  void answer_descriptor(Address to, int descriptor);
  void look_at_cell();
  void refuse(Address to, const Error& error) { answer(*this, to, as_refused(error)); }
  void answer_again(Address to, const Exec& exec);
  HeldExec* live(Address to, const std::string& exec_id);

  ProcessIdentity identity_;
  std::unique_ptr<char[]> scratch_;
  rlimit open_files_;
  std::span<char> command_line_;
  std::unique_ptr<sandbox::Cell> unborn_;
  std::unique_ptr<sandbox::Cell> cell_;
  sandbox::Plan plan_;  // the sandbox's plan
  bool cell_lost_ = false;
  bool may_have_stranger_ = false;  // a command of the sandbox was lost
  struct WantsEmpty {
    Address to;
    Wanted wanted;
  };
  std::vector<WantsEmpty> want_empty_;
  std::unordered_set<std::string> ending_frozen_;  // execs for which the sandbox was thawed
  bool must_confine_ = false;                      // a sandbox was requested
  Wardens wardens_;
  ExecJournal journal_{"."};
  HeldExec::Shared shared_;
  Fd listener_;
  Fd signals_;
  Fd folder_changes_;
  std::map<std::string, std::unique_ptr<HeldExec>> execs_;
  // Hashes of every id that has been used: an id that is not among them need not be looked up.
  std::unordered_set<std::size_t> used_;
  std::map<std::uint64_t, std::unique_ptr<Session>> sessions_;
  std::uint64_t next_client_ = 1;
  BootMs deadline_ = never;
  bool has_orphans_ = false;
  bool has_unsynced_ = false;  // exit records that only the page cache has
  BootMs sync_at_ = never;
  pid_t syncer_ = 0;
  bool stopping_ = false;
  EndRecord end_record_;
  Draft goodbye_{ended_file};
  std::vector<Address> want_goodbye_;
};

}  // namespace berth::keeper
