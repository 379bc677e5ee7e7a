#include "text/json_schema.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tprimat {
namespace {

class TypeNamer {
 public:
  explicit TypeNamer(Further further) : further_(further) {}

  // The schema without the structs in it, which definitions() has.
  Json take(Json schema) {
    if (schema.contains("title")) return refer(std::move(schema));
    for (const char* part : {"items", "additionalProperties"})
      if (const Json* found = schema.find(part)) schema[part] = take(*found);
    if (const Json* found = schema.find("anyOf")) return join(take((*found)[0]), schema);
    if (further_ == Further::forbidden && schema.contains("type") && schema["type"].is_array())
      schema["type"] = "number";
    return schema;
  }

  // Those of a struct alone.
  Json take_members(Json schema) {
    schema.erase("title");
    Json properties = Json::object();
    for (const auto& [key, value] : schema["properties"].items()) properties[key] = take(value);
    schema["properties"] = std::move(properties);
    if (further_ == Further::forbidden) schema["additionalProperties"] = false;
    return schema;
  }

  const Json& definitions() const { return definitions_; }

 private:
  Json refer(Json schema) {
    const std::string name = schema["title"].text();
    Json reference{{"$ref", "#/$defs/" + name}};
    if (const Json* description = schema.find("description")) reference["description"] = *description;
    schema.erase("description");
    Json members = take_members(std::move(schema));
    if (const Json* known = definitions_.find(name))
      CHECK(*known == members);  // two structs of one name
    else
      definitions_[name] = std::move(members);
    return reference;
  }

  // A value or null; `outer` has the description.
  static Json join(Json value, const Json& outer) {
    if (value.contains("enum"))
      value["enum"].push_back(nullptr);
    else if (value.contains("type"))
      value["type"] = Json::array({value["type"], "null"});
    else
      value = Json{{"anyOf", Json::array({std::move(value), Json{{"type", "null"}}})}};
    if (const Json* description = outer.find("description")) value["description"] = *description;
    return value;
  }

  Further further_;
  Json definitions_ = Json::object();
};

}  // namespace

Json name_types(const SchemaHead& head, Json schema, Further further) {
  Json named = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                {"$id", head.id},
                {"title", head.title},
                {"description", head.description}};
  TypeNamer namer(further);
  named.update(namer.take(std::move(schema)));
  if (!namer.definitions().empty()) named["$defs"] = namer.definitions();
  return named;
}

}  // namespace tprimat
