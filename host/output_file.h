// Files that the user asked for: written whole or not at all.
#pragma once
#include <string>

namespace gpusim::host {

// Written beside `path`, then renamed; devices and pipes are written in place. `option` is named in
// messages: "--stats". Throws UserError.
void write_output_file(const std::string& option, const std::string& path, const std::string& text);
// Throws UserError now if that could not work later, after a long run.
void check_output_file(const std::string& option, const std::string& path);

}  // namespace gpusim::host
