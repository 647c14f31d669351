package clip

import (
	"fmt"
	"strconv"
	"strings"
)

// Text is the text, or its first bytesMax bytes and a mark that tells how long it was, as in "aaa…(700,000 bytes)".
// Like Copy, but a text that fits may share memory with what it was cut from.
func Text(text string, bytesMax int) string {
	if len(text) <= bytesMax {
		return text
	}
	// The last character may be cut in its middle: it is left out.
	return strings.ToValidUTF8(text[:bytesMax], "") + "…(" + grouped(len(text)) + " bytes)"
}

// Copy is Text in memory of its own: a short name is often a part of a long path, which it would keep.
func Copy(text string, bytesMax int) string {
	if len(text) <= bytesMax {
		return strings.Clone(text)
	}
	return Text(text, bytesMax)
}

// List is the list with its first textsMax texts, each as Text has it; one more text says how many were left out.
func List(texts []string, textsMax, bytesMax int) []string {
	left := max(0, len(texts)-textsMax)
	clipped := make([]string, 0, len(texts)-left+1)
	for _, text := range texts[:len(texts)-left] {
		clipped = append(clipped, Text(text, bytesMax))
	}
	if left > 0 {
		clipped = append(clipped, fmt.Sprintf("…(%s more)", grouped(left)))
	}
	return clipped
}

// grouped is a number with a comma before each three digits.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
