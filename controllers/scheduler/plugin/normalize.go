package plugin

// Normalize scales non-negative raw scores so that the largest becomes MaxScore. With reverse the smallest raw score is
// the best; if all are zero then every node is equally good.
func Normalize(scores []int64, reverse bool) {
	var most int64
	for _, s := range scores {
		most = max(most, s)
	}
	for i, s := range scores {
		scaled := s
		if most > 0 {
			scaled = MaxScore * s / most
		}
		if reverse {
			scaled = MaxScore - scaled
		}
		scores[i] = scaled
	}
}
