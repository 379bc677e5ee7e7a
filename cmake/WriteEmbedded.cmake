# Writes OUT: a C++ file that defines NAMESPACE::NAME with the bytes of FILE.
# Bytes rather than a literal, because compilers limit the length of one literal.
cmake_minimum_required(VERSION 3.24)
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],){24})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT}.tmp "#include <string_view>
namespace ${NAMESPACE} {
namespace {
constexpr unsigned char k_${NAME}_bytes[] = {
${bytes}0};
}  // namespace
extern const std::string_view ${NAME};
const std::string_view ${NAME}(reinterpret_cast<const char*>(k_${NAME}_bytes), sizeof k_${NAME}_bytes - 1);
}  // namespace ${NAMESPACE}
")
file(RENAME ${OUT}.tmp ${OUT})
