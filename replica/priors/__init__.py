"""Weight priors, one file each; `replica.catalogue.PRIORS` lists them by name."""
