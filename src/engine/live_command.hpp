#pragma once

#include "execution/live_command.hpp"

// A command in a leased place, in the words of those who serve its client. They know the engine and
// not what is below it.
namespace berth::engine {

using execution::Ended;
using execution::EndOfInput;
using execution::LiveCommandPtr;
using execution::LoginCommand;
using execution::OutputKind;
using execution::OutputPiece;
using execution::OutputTaker;
using execution::SignalNumber;
using CommandInput = execution::Input;

}  // namespace berth::engine
