package podconfig

import "strings"

// Expand replaces $(NAME) by the first of the maps that has NAME. An unknown
// reference stays as written, and $$ gives $, so that $$(NAME) stays literal.
func Expand(s string, maps ...map[string]string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:i])
		s = s[i+1:]
		switch s[0] {
		case '$':
			out.WriteByte('$')
			s = s[1:]
		case '(':
			s = expandReference(&out, s, maps)
		default:
			out.WriteByte('$')
			out.WriteByte(s[0])
			s = s[1:]
		}
	}
}

// expandReference handles s = "(NAME)rest" and returns what follows it.
func expandReference(out *strings.Builder, s string, maps []map[string]string) string {
	end := strings.IndexByte(s, ')')
	if end < 0 {
		out.WriteString("$(")
		return s[1:]
	}
	name := s[1:end]
	for _, m := range maps {
		if v, ok := m[name]; ok {
			out.WriteString(v)
			return s[end+1:]
		}
	}
	out.WriteString("$" + s[:end+1])
	return s[end+1:]
}
