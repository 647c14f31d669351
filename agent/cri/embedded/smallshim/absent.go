//go:build !smallshim

package smallshim

// Bytes is empty: this build carries no helper executable.
func Bytes() []byte { return nil }
