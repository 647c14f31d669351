package termstore

// WriterKey is where it stands which member's log, term and vote are stored.
const WriterKey = "setpoint/member-id"

// Writer is the member whose term and vote these are, "" if there are none or they are a founder's of an older release.
func (s *Store) Writer() (string, error) {
	stored, err := s.Get([]byte(WriterKey))
	if NotFound(err) {
		return "", nil
	}
	return string(stored), err
}

// Sign writes down whose they are: with term and vote of another member this one could vote twice in a term.
func (s *Store) Sign(id string) error {
	stored, err := s.Writer()
	if err != nil || stored == id {
		return err
	}
	return s.Set([]byte(WriterKey), []byte(id))
}
