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
//     family@0     starts a child that leaves the process group, and says its number
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
    if (event.what == "deaf") std::signal(SIGTERM, SIG_IGN);
    if (event.what == "nan") nan_ = true;
    if (event.what == "tokens") tokens_ = ", \"tokens\": " + event.value;
    std::fflush(stdout);
    if (event.what == "exit") std::exit(number);
    if (event.what == "signal") std::raise(number);
    while (event.what == "hang") sleep_ms(1000);
    if (event.what == "half") {
      std::fputs("{\"step\": 99, \"time_sec", steps_);
      std::exit(0);
    }
  }

  void do_step(int step, int milliseconds) {
    sleep_ms(milliseconds);
    const std::string loss = nan_ ? "null" : std::to_string(10.0 / (1.0 + step));
    std::fprintf(steps_,
                 "{\"step\": %d, \"time_seconds\": %.6f, \"loss\": %s, \"learning_rate\": 0.001, "
                 "\"memory_allocated_gb\": 0.5%s}\n",
                 step, milliseconds * 1e-3 + 1e-5 * (step % 7), loss.c_str(), tokens_.c_str());
    std::fflush(steps_);
    std::printf(" iteration %8d | lm loss: %s |\n", step, loss.c_str());
    std::fflush(stdout);
  }

 private:
  std::FILE* steps_;
  bool nan_ = false;
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
