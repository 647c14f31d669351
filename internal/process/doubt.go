package process

// ExitInDoubt is the exit status of a process that ends with InDoubt: sysexits' EX_DATAERR. The units of systemd do not start it again
// then.
const ExitInDoubt = 65

// InDoubt is an error that a new start meets again, until somebody has looked at the machine's data and decided.
type InDoubt struct{ error }

// Doubt is err as InDoubt.
func Doubt(err error) error { return InDoubt{err} }

// Unwrap returns the error itself.
func (d InDoubt) Unwrap() error { return d.error }
