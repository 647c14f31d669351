//go:build !shimbinary

package shimbinary

// Bytes is empty: this build carries no helper executable.
func Bytes() []byte { return nil }
