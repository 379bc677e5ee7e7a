// A scripted stand-in for a trainer: writes step records to $TPRIMAT_STEPS and a line per step to stdout, and
// misbehaves on demand.
//
//   fake_trainer STEPS MILLISECONDS [EVENT...]      where EVENT is WHAT@STEP or WHAT@STEP=VALUE, done after that step
//   (0: before the first)
//     exit@3=5     ends with exit status 5            signal@3=9   kills itself with a signal
//     hang@3       never goes on                      nan@3        losses are NaN from here on
//     half@3       writes half a record and ends      say@3=TEXT   prints a line on stderr
//     noise@3      a long line and binary bytes       deaf@0       ignores SIGTERM
//     tokens@3=64  says that steps from here on train on so many tokens
//     rate@3=0.5   says that steps from here on have this learning rate
//     setting@0=X  prints "setting X"
//     family@0     starts a child that leaves the process group, and says its number
//     demon@0      the same by a double fork, and the child ignores SIGTERM
//     flood@3=200  prints so many megabytes
//     unlink@3=P   removes a file                     truncate@3=P empties a file
//     torchrun@3=R torchrun's report of a rank R that got SIGKILL
//     mpirun@3=R   Open MPI's message of such a rank  crash@3      ends with SIGSEGV
//     slow@3=500   steps from here on take so many milliseconds
//     resume@0=7   goes on after this step: step s is called s + 7
//
//   $TPRIMAT_STEPS stands for its value in P.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Event {
  std::string what, value;
  int step = 0;
};

Event parse_event(const std::string& text) {
  const size_t at = text.find('@'), equals = text.find('=', at);
  Event event;
  event.what = text.substr(0, at);
  event.step = std::atoi(text.c_str() + at + 1);
  if (equals != std::string::npos) event.value = text.substr(equals + 1);
  return event;
}

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

void start_family() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    while (true) ::pause();
  }
  std::printf("family %d\n", static_cast<int>(child));
}

void start_demon() {
  int ends[2];
  if (::pipe(ends) != 0) return;
  if (::fork() == 0) {
    ::setsid();
    const pid_t demon = ::fork();
    if (demon == 0) {
      std::signal(SIGTERM, SIG_IGN);
      while (true) ::pause();
    }
    [[maybe_unused]] const ssize_t written = ::write(ends[1], &demon, sizeof demon);
    ::_exit(0);
  }
  pid_t demon = 0;
  [[maybe_unused]] const ssize_t count = ::read(ends[0], &demon, sizeof demon);
  std::printf("family %d\n", static_cast<int>(demon));
}

void flood(int megabytes) {
  std::string line =
      "a line of a trainer that has very much to say, and says it to everybody who cannot stop it at once\n";
  std::string block;
  while (block.size() < 1'000'000) block += line;
  for (int i = 0; i < megabytes; ++i) std::fwrite(block.data(), 1, 1'000'000, stdout);
}

void report_as_torchrun(int rank) {
  std::printf(
      "=====================================================\ntrain.py FAILED\n"
      "-----------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n"
      "-----------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n"
      "  time      : 2025-01-01_00:00:00\n  host      : here\n  rank      : %d (local_rank: %d)\n"
      "  exitcode  : -9 (pid: 8158)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 8158\n"
      "=====================================================\n",
      rank, rank);
}

void report_as_mpirun(int rank) {
  std::printf(
      "--------------------------------------------------------------------------\n"
      "mpirun noticed that process rank %d with PID 4711 on node here exited on signal 9 (Killed).\n"
      "--------------------------------------------------------------------------\n",
      rank);
}

std::string path_of(const std::string& value) {
  return value == "$TPRIMAT_STEPS" ? std::string(std::getenv("TPRIMAT_STEPS")) : value;
}

void make_noise() {
  const std::string line(3'000'000, 'x');
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fwrite("\0\xff\xfe\r\n\r", 1, 6, stdout);
}

class Trainer {
 public:
  explicit Trainer(std::FILE* steps) : steps_(steps) {}

  void obey(const Event& event) {
    const int number = std::atoi(event.value.c_str());
    if (event.what == "say") std::fprintf(stderr, "%s\n", event.value.c_str());
    if (event.what == "noise") make_noise();
    if (event.what == "family") start_family();
    if (event.what == "demon") start_demon();
    if (event.what == "flood") flood(number);
    if (event.what == "unlink") ::unlink(path_of(event.value).c_str());
    if (event.what == "truncate" && ::truncate(path_of(event.value).c_str(), 0) != 0) std::exit(99);
    if (event.what == "torchrun") report_as_torchrun(number);
    if (event.what == "mpirun") report_as_mpirun(number);
    change_steps(event, number);
    std::fflush(stdout);
    end(event, number);
  }

  void do_step(int step, int milliseconds) {
    if (slow_ > 0) milliseconds = slow_;
    step += resumed_after_;
    sleep_ms(milliseconds);
    const std::string loss = nan_ ? "null" : std::to_string(10.0 / (1.0 + step));
    std::fprintf(steps_,
                 "{\"step\": %d, \"time_seconds\": %.6f, \"loss\": %s, \"learning_rate\": %s, "
                 "\"memory_allocated_gb\": 0.5%s}\n",
                 step, milliseconds * 1e-3 + 1e-5 * (step % 7), loss.c_str(), rate_.c_str(), tokens_.c_str());
    std::fflush(steps_);
    std::printf(" iteration %8d | lm loss: %s |\n", step, loss.c_str());
    std::fflush(stdout);
  }

 private:
  void change_steps(const Event& event, int number) {
    if (event.what == "slow") slow_ = number;
    if (event.what == "resume") resumed_after_ = number;
    if (event.what == "rate") rate_ = event.value;
    if (event.what == "setting") std::printf("setting %s\n", event.value.c_str());
    if (event.what == "deaf") std::signal(SIGTERM, SIG_IGN);
    if (event.what == "nan") nan_ = true;
    if (event.what == "tokens") tokens_ = ", \"tokens\": " + event.value;
  }

  void end(const Event& event, int number) {
    if (event.what == "exit") std::exit(number);
    if (event.what == "signal") std::raise(number);
    if (event.what == "crash") crash();
    while (event.what == "hang") sleep_ms(1000);
    if (event.what == "half") {
      std::fputs("{\"step\": 99, \"time_sec", steps_);
      std::exit(0);
    }
  }

  static void crash() {
    std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would catch it
    ::kill(::getpid(), SIGSEGV);
    while (true) ::pause();
  }

  std::FILE* steps_;
  bool nan_ = false;
  int slow_ = 0, resumed_after_ = 0;
  std::string rate_ = "0.001";
  std::string tokens_;  // member of each record, with its comma
};

}  // namespace

int main(int argc, char** argv) {
  const char* path = std::getenv("TPRIMAT_STEPS");
  std::FILE* steps = path == nullptr ? nullptr : std::fopen(path, "w");
  if (steps == nullptr || argc < 3) return 2;
  std::vector<Event> events;
  for (int i = 3; i < argc; ++i) events.push_back(parse_event(argv[i]));
  Trainer trainer(steps);
  for (int step = 0; step <= std::atoi(argv[1]); ++step) {
    if (step > 0) trainer.do_step(step, std::atoi(argv[2]));
    for (const Event& event : events)
      if (event.step == step) trainer.obey(event);
  }
  return 0;
}
