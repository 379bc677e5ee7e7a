#pragma once

#include <string_view>

// All output to stdout and stderr. Lost output to stdout is always reported; a failed write to stderr never ends the
// program.
namespace tprimat {

// Call at program start. Reopens closed descriptors 0 to 2, so that no file of ours takes their numbers. Reading the
// closed stdin and writing the closed stdout or stderr still fail. A reader that goes away (EPIPE) is an error to
// handle.
void open_standard_streams();

// Call before exec: restores the default SIGPIPE that other programs expect.
void restore_pipe_signal();

// Buffered until the buffer is full, and then written up to the last line end; until flush_stdout(), and on a terminal
// until the line ends. When the reader of a pipe is gone, this ends the program by SIGPIPE, like `cat`. flush_stdout()
// reports all other failures.
void write_stdout(std::string_view text);

// Writes the buffer. Returns why output to stdout was lost, now or earlier ("No space left on device"), or nullptr.
const char* flush_stdout();

// Unbuffered. Returns false on failure; never throws, never ends the program.
bool write_stderr(std::string_view text) noexcept;

}  // namespace tprimat
