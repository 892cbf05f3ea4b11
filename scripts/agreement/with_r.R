# Fit every table of a folder by leaps, glmnet, MASS and R's own lm: for NAME.csv a file NAME.r with a line a number.
#
#   Rscript with_r.R FOLDER
#
# Tables have columns x1, x2, ..., weight, label (0 or 1) and y; FOLDER/plan.csv says of each how many sizes leaps is to
# take and which columns are independent. A line is: question, place (a size or a gamma), name, value.

suppressMessages({library(leaps); library(glmnet); library(MASS)})

folder <- commandArgs(TRUE)[1]
plan <- read.csv(file.path(folder, "plan.csv"), colClasses = c("character", "integer", "character"))
gammas <- c(10, 1, 0.1, 0.01)
tight <- list(thresh = 1e-22, maxit = 1e8)

for (row in seq_len(nrow(plan))) {
  table <- read.csv(file.path(folder, paste0(plan$name[row], ".csv")))
  X <- as.matrix(table[grep("^x", names(table))])
  y <- table$y
  n <- nrow(X)
  lines <- character(0)
  write_down <- function(question, place, values) {
    lines <<- c(lines, sprintf("%s\t%s\t%s\t%.17g", question, format(place, digits = 15), names(values), values))
  }
  # y is divided by its standard deviation inside glmnet: lambda is in units of y, see results/correctness.md
  spread <- function(v, w) sqrt(sum(w * (v - weighted.mean(v, w))^2) / sum(w))
  ridge <- function(question, lambdas, ...) {
    fit <- do.call(glmnet, c(list(X, alpha = 0, lambda = lambdas, ...), tight))
    for (k in seq_along(lambdas)) write_down(question, gammas[k], coef(fit)[, k])
  }
  ones <- rep(1, n)
  ridge("ridge", gammas * spread(y, ones) / 2, y = y)
  ridge("ridge of weighted rows", gammas * spread(y, table$weight) / 2, y = y, weights = table$weight)
  ridge("ridge of raw columns", gammas * spread(X[, 1], ones)^2 * spread(y, ones) / 2, y = y, standardize = FALSE)
  ridge("logistic", gammas, y = table$label, family = "binomial")
  # lm.ridge of MASS divides columns by their standard deviations (with n) too
  if (n > ncol(X) + 1) for (gamma in gammas) write_down("lm.ridge", gamma, coef(lm.ridge(y ~ X, lambda = n * gamma / 2)))

  kept <- strsplit(plan$kept[row], " ")[[1]]
  if (plan$sizes[row] > 0) {
    searched <- regsubsets(X[, kept], y, nvmax = plan$sizes[row], method = "exhaustive", really.big = TRUE)
    found <- summary(searched)
    for (size in seq_len(plan$sizes[row])) {
      support <- which(found$which[size, -1])
      refit <- lm.fit(cbind(1, X[, kept][, support]), y, tol = 1e-14)
      write_down("leaps", size, c(rss = sum(refit$residuals^2), own = found$rss[size]))
      write_down("leaps support", size, support)
    }
    frame <- data.frame(X[, kept], y = y)
    whole <- lm(y ~ ., frame)
    write_down("lm", 0, coef(whole))
    if (length(kept) <= 64) {
      stepped <- stepAIC(whole, trace = 0)
      write_down("stepAIC", 0, c(aic = extractAIC(stepped)[2], coef(stepped)))
    }
  }
  writeLines(lines, file.path(folder, paste0(plan$name[row], ".r")))
  cat(plan$name[row], "\n")
}
versions <- sapply(c("leaps", "glmnet", "MASS"), function(one) as.character(packageVersion(one)))
writeLines(c(R.version.string, paste(names(versions), versions)), file.path(folder, "versions.txt"))
