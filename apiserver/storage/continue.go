package storage

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"

	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	// pagesMaxAge is how long the pages of one list stay one cut. The store may keep
	// their revision for longer; clients count on the end that upstream's compaction
	// sets, every five minutes.
	pagesMaxAge = 5 * time.Minute
	// compactedContinue marks a token whose snapshot is gone: the client agreed to
	// go on with the rest of a newer one.
	compactedContinue = -1
	// endOfKey behind a key is the next there can be: whoever goes on from there in a
	// newer cut sees what came between.
	endOfKey = "\x00"
	// beginMark is between upstream's part of a token, base64, and the time of the
	// first page, in seconds since 1970 with this base.
	beginMark = "."
	beginBase = 36
)

// cut says where a list reads: what is at from and behind it, in root. The first of
// its pages was read at begin; zero: unknown, the token is of an older server.
type cut struct {
	root  *state.Root
	from  string
	begin time.Time
}

// behind is where the next page begins: behind the last record that this one looked
// at, nil if there was none.
func (c cut) behind(last *record.Record) string {
	if last == nil {
		return c.from
	}
	return last.Key + endOfKey
}

// continueCut returns where the page that a token promised begins.
func (t *Table) continueCut(ctx context.Context, o ListOptions) (cut, error) {
	prefix := t.namespacePrefix(o.Namespace)
	from, revision, begin, err := decodeContinue(o.Continue, prefix)
	switch {
	case err != nil:
		return cut{}, apierrors.NewBadRequest("invalid continue token: " + err.Error())
	case o.ResourceVersion != "" && o.ResourceVersion != "0":
		return cut{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	case revision == compactedContinue:
		root, err := t.store.rootAtLeast(ctx, "")
		return cut{root, from, time.Now()}, err
	case !begin.IsZero() && time.Since(begin) > pagesMaxAge:
		return cut{}, expiredPage(from, prefix)
	}
	root, err := t.rootOf(ctx, o.Namespace, prefix, uint64(revision))
	if errors.Is(err, errCompacted) {
		return cut{}, expiredPage(from, prefix)
	}
	return cut{root, from, begin}, err
}

func encodeContinue(next, prefix string, revision int64, begin time.Time) (string, error) {
	token, err := storage.EncodeContinue(next, prefix, revision)
	if err != nil || begin.IsZero() {
		return token, err
	}
	return token + beginMark + strconv.FormatInt(begin.Unix(), beginBase), nil
}

func decodeContinue(token, prefix string) (from string, revision int64, begin time.Time, err error) {
	token, seconds, dated := strings.Cut(token, beginMark)
	if dated {
		var unix int64
		if unix, err = strconv.ParseInt(seconds, beginBase, 64); err != nil {
			return "", 0, time.Time{}, errForgedContinue
		}
		begin = time.Unix(unix, 0)
	}
	from, revision, err = storage.DecodeContinue(token, prefix)
	if err == nil && revision < compactedContinue {
		err = errForgedContinue
	}
	return from, revision, begin, err
}

// endPage leaves the token for what is at next and behind it.
func (t *Table) endPage(c cut, prefix, next string, o ListOptions, page *Page) error {
	token, err := encodeContinue(next, prefix, int64(c.root.Revision), c.begin)
	if err != nil {
		return err
	}
	page.Continue = token
	if o.everything() {
		remaining := int64(c.root.CountFrom(prefix, next))
		page.Remaining = &remaining
	}
	return nil
}

// expiredPage tells the client that the pages' snapshot is gone and offers a
// token that goes on in the newest one.
func expiredPage(from, prefix string) error {
	err := expired(
		"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
	)
	if token, tokenErr := encodeContinue(from, prefix, compactedContinue, time.Time{}); tokenErr == nil {
		err.ErrStatus.Continue = token
	}
	return err
}
