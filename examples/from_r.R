# binreps from R, through the command line and its JSON: Rscript examples/from_r.R tests.csv
# Needs the package jsonlite, and binreps on the path (or its path in the variable BINREPS).
library(jsonlite)

binreps <- function(...) {
  words <- vapply(c(...), shQuote, "")
  said <- system2(Sys.getenv("BINREPS", "binreps"), words, stdout = TRUE)
  if (!is.null(attr(said, "status"))) stop("binreps refused; the sentence above says why")
  fromJSON(paste(said, collapse = "\n"))
}

file <- commandArgs(trailingOnly = TRUE)[1]
folder <- tempfile("binreps")
analysis <- binreps("analyse", file, "--out", folder, "--json")

# rates: one row per rate and method, as a data frame
rates <- analysis$populations$rates[[1]]
print(rates)

# everyone: score, interval and decision
people <- read.csv(file.path(folder, "scores.csv"))
print(table(people$decision))

# one patient: 2 positives of 6 tests
patient <- binreps("decide", "2/6", "--model", file.path(folder, "summary.json"), "--json")
cat(sprintf("2 of 6: %s, %.1f %%\n", patient$decision, 100 * patient$probability))
cat(patient[["next"]]$sentence, "\n")
