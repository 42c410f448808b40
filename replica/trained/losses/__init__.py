"""The losses of the trained memory, one file each: proximal equation and Hessian trace derived."""
