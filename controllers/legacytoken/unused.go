package legacytoken

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Upstream's labels of a token's Secret. Their values are dates in UTC.
const (
	// lastUsedLabel is the day of the last use; the API server writes it.
	lastUsedLabel = "kubernetes.io/legacy-token-last-used"
	// invalidSinceLabel is since when the API refuses the token.
	invalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"
	dateFormat        = "2006-01-02"
)

// unusedPeriod is how long a token may be unused before it is refused, and refused before its Secret goes; upstream's
// default.
const unusedPeriod = 365 * 24 * time.Hour

// verdict is what becomes of a token's Secret.
type verdict int

const (
	stays verdict = iota
	// invalidated: it gets the label by which the API refuses the token.
	invalidated
	deleted
)

// trackedLongEnough reports whether the use of tokens has been recorded for the whole period: since the day after the
// one on which it began.
func trackedLongEnough(since string, now time.Time) (bool, error) {
	day, err := time.Parse(dateFormat, since)
	if err != nil {
		return false, err
	}
	return !now.Before(day.AddDate(0, 0, 1).Add(unusedPeriod)), nil
}

// judge decides about the token in a Secret. account is the one that it is for, nil if there is none; mounted are the names of the
// Secrets that pods of its namespace refer to. It is pure.
//
// Only tokens go that the account lists, as those that older clusters made by themselves: a Secret that somebody made for its token
// stays. What cannot be read stays too.
func judge(secret *corev1.Secret, account *corev1.ServiceAccount, mounted func() map[string]bool, now time.Time) verdict {
	now = now.UTC()
	limit := now.Add(-unusedPeriod)
	lastDay := limit.Format(dateFormat)
	if !isUnused(secret, limit, lastDay) || account == nil || !lists(account, secret) || mounted()[secret.Name] {
		return stays
	}
	invalidSince := secret.Labels[invalidSinceLabel]
	switch _, err := time.Parse(dateFormat, invalidSince); {
	case err != nil:
		return invalidated
	case invalidSince >= lastDay:
		return stays
	}
	return deleted
}

// isUnused reports whether a token was made before the limit, and not used on or after that day.
func isUnused(secret *corev1.Secret, limit time.Time, lastDay string) bool {
	if secret.Type != corev1.SecretTypeServiceAccountToken || secret.DeletionTimestamp != nil || !secret.CreationTimestamp.Time.Before(limit) {
		return false
	}
	lastUsed, used := secret.Labels[lastUsedLabel]
	if !used {
		return true
	}
	_, err := time.Parse(dateFormat, lastUsed)
	return err == nil && lastUsed < lastDay
}

// lists reports whether the account is the one that the Secret is for, and names it among its own.
func lists(account *corev1.ServiceAccount, secret *corev1.Secret) bool {
	return isFor(secret, account) &&
		slices.ContainsFunc(account.Secrets, func(ref corev1.ObjectReference) bool { return ref.Name == secret.Name })
}
