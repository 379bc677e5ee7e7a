#include "command_line/session.h"

#include "base/output.h"
#include "base/printable.h"

namespace tprimat {

CommandLine* add_verb(CommandLine& program, Session& session, const std::string& name, const std::string& summary,
                      const std::string& examples) {
  CommandLine* verb = program.add_subcommand(name, summary);
  verb->footer("Examples:\n" + examples);
  verb->add_flag("-q,--quiet", session.quiet, "Print only errors on stderr");
  verb->add_flag("-v,--verbose", session.verbose, "Print more detail on stderr");
  verb->add_flag("--no-color", session.no_color, "Disable colour (as NO_COLOR does)");
  return verb;
}

void add_json_option(CommandLine& verb, Session& session) {
  verb.add_flag("--json", session.json, "Print JSON on stdout");
}

void add_config_options(CommandLine& verb, Session& session) {
  verb.add_option("--config", session.config_path,
                  "Configuration file (default: ./config.yaml, else the built-in default)")
      ->type_name("FILE");
  verb.add_option("--set", session.overrides,
                  "Override one key, e.g. --set training.data.seq_length=4096; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void print_result(std::string_view text) { write_stdout(printable(text, "\n\t")); }
void print_coloured(std::string_view text) { write_stdout(printable(text, "\n\t\033")); }

}  // namespace tprimat
