#pragma once

#include <string>

#include "text/json.h"

namespace tprimat {

// What a document may hold beside the properties of its schema.
enum class Further { allowed, forbidden };

// A schema of json_schema<T>() with each struct under "$defs", by its name, and "$ref" where it is used; `title`, `id`
// and `description` are those of the document. A document whose further properties are forbidden comes from this
// program alone, which writes numbers there, never null in their place.
struct SchemaHead {
  std::string id, title, description;
};
Json name_types(const SchemaHead& head, Json schema, Further further);

}  // namespace tprimat
