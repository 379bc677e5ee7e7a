#pragma once

#include <string>

#include "compare/comparison.h"
#include "report/document.h"

// The parts of the page that are plain HTML, and tell everything but the curves where scripts do not run.
namespace tprimat::results {

std::string render_table(const TextTable& table);

// Per model its headlines, the sentences of build_document themselves.
std::string render_verdicts(const Document& document);

// All participants of all models in one table: facts, every metric with its interval. What a script sorts and filters
// by stands in attributes: data-value holds a figure in full, data-model and the like a fact.
std::string render_run_table(const Comparison& comparison);

// What every finding is about, what shows it, and what to do.
std::string render_audit(const Comparison& comparison);

// What else build_document says under headings of each model: pairs, notes, files.
std::string render_remarks(const Document& document);

// Every metric with its formula. Scripts add the numbers of each run.
std::string render_formulas(const Comparison& comparison);

// What the document ends with: how its figures are to be read.
std::string render_reading_aid(const Document& document);

// "12 runs of 3 models"
std::string count_runs(const Comparison& comparison);

}  // namespace tprimat::results
