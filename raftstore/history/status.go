package history

import "time"

// Status is what a History has.
type Status struct {
	// Since is the time of the first change kept, zero if there is none; Oldest the first revision that can be asked for.
	Since  time.Time `json:"since,omitzero"`
	Oldest uint64    `json:"oldestRevision"`
	// Newest is the revision up to which changes were taken, Changes how many are kept, Bytes their size on the disk.
	Newest  uint64 `json:"newestRevision"`
	Changes uint64 `json:"changes"`
	Bytes   int64  `json:"bytes"`
	// Retention and SizeBytes are the limits.
	Retention time.Duration `json:"retentionNanoseconds"`
	SizeBytes int64         `json:"sizeLimitBytes"`
	// Purging is how many files may still have values that were purged: nobody gets them any more.
	Purging int `json:"purging,omitempty"`
	// Holes are what is missing in between; Trouble is why nothing is written now, "" if it is.
	Holes   []Hole `json:"holes,omitempty"`
	Trouble string `json:"trouble,omitempty"`
}

// Status returns the present status, nil if nothing is kept.
func (h *History) Status() *Status {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.present()
	s := &Status{
		Oldest: h.oldest, Newest: h.head, Bytes: h.bytes(),
		Purging: h.mayHavePurged(), Retention: h.config.Retention, SizeBytes: h.config.SizeBytes, Holes: v.holes(h.oldest),
	}
	for _, b := range v.blocks {
		s.Changes += b.changes
	}
	for i := range v.memory {
		s.Changes += v.memory[i].changes
	}
	if begin, known := v.begins(); known {
		s.Since = timeOf(begin)
	}
	if h.trouble != nil {
		s.Trouble = h.trouble.Error()
	}
	return s
}
