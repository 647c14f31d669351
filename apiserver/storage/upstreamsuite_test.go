package storage

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

func isNotFound(err error) bool { return apierrors.IsNotFound(err) || storage.IsNotFound(err) }

// TestUpstream runs the published tests of k8s.io/apiserver's storage. Not run:
//
//   - CreateWithTTL, GuaranteedUpdateWithTTL: nothing here expires by itself; Events
//     are deleted by a controller.
//   - TransformationFailure, WatchError, WatchErrorIsBlockingFurtherEvents,
//     GuaranteedUpdateChecksStoredData, GetListWith(out)ErrorAggregation,
//     WatchWithUnsafeDelete, Delete...TransformOrDecodeError: values are not encrypted,
//     so none fails to be transformed; damage is found below, by checksums.
//   - Stats: measures bytes with an encoder of etcd's.
//   - PreconditionalDeleteWith(Only)Suggestion(Pass): gives an object another uid; the log refuses
//     that, since it would pass for its successor.
//   - KeySchema: how etcd3 joins keys; ours are made of resource, namespace, name.
//   - WatchInitializationSignal: frees a seat of priority and fairness, not here.
//   - WatchContextCancel: a watch whose client is gone already; it gets an error that
//     nobody reads, not a closed watch.
//   - OptionalTestProgressNotify: waits 30 s for what comes once a minute; see
//     TestBookmarksComeEveryMinuteAndBeforeTheEnd.
func TestUpstream(t *testing.T) {
	for name, run := range upstreamTests {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(name, setsFeatureGates) {
				t.Parallel()
			}
			run(context.Background(), t, newUpstream(t))
		})
	}
}

// setsFeatureGates is how the names of those tests begin that change what the whole
// process does.
const setsFeatureGates = "Watch"

func anyKey(context.Context, *testing.T, string) {}

func anyCalls(*testing.T, uint64, uint64) {}

// plain is for tests that need nothing but the store.
func plain(run func(context.Context, *testing.T, storage.Interface)) func(context.Context, *testing.T, *upstream) {
	return func(ctx context.Context, t *testing.T, u *upstream) { run(ctx, t, u) }
}

var upstreamTests = map[string]func(context.Context, *testing.T, *upstream){
	"Create":                              func(ctx context.Context, t *testing.T, u *upstream) { storagetesting.RunTestCreate(ctx, t, u, anyKey) },
	"CreateWithKeyExist":                  plain(storagetesting.RunTestCreateWithKeyExist),
	"Get":                                 plain(storagetesting.RunTestGet),
	"UnconditionalDelete":                 plain(storagetesting.RunTestUnconditionalDelete),
	"ConditionalDelete":                   plain(storagetesting.RunTestConditionalDelete),
	"DeleteWithSuggestion":                plain(storagetesting.RunTestDeleteWithSuggestion),
	"DeleteWithSuggestionAndConflict":     plain(storagetesting.RunTestDeleteWithSuggestionAndConflict),
	"DeleteWithConflict":                  plain(storagetesting.RunTestDeleteWithConflict),
	"DeleteWithSuggestionOfDeletedObject": plain(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	"ValidateDeletionWithSuggestion":      plain(storagetesting.RunTestValidateDeletionWithSuggestion),
	"ValidateDeletionWithOnlySuggestion":  plain(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	"List": func(ctx context.Context, t *testing.T, u *upstream) {
		u.increaseRevision(ctx, t) // the test goes back to the revision before its own first
		storagetesting.RunTestList(ctx, t, u, u.compact, false, storagetesting.NewKubernetesRecorder(nil))
	},
	"ConsistentList": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestConsistentList(ctx, t, u, u.increaseRevision, false, true, false)
	},
	"GetListNonRecursive": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, u.increaseRevision, u)
	},
	"GetListRecursivePrefix": plain(storagetesting.RunTestGetListRecursivePrefix),
	"ListContinuation": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListContinuation(ctx, t, u, anyCalls)
	},
	"ListPaginationRareObject": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, u, anyCalls)
	},
	"ListContinuationWithFilter": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, u, anyCalls)
	},
	"ListInconsistentContinuation": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, u, u.compact)
	},
	"ListResourceVersionMatch": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, u)
	},
	"ListPaging":          plain(storagetesting.RunTestListPaging),
	"NamespaceScopedList": plain(storagetesting.RunTestNamespaceScopedList),
	"GuaranteedUpdate": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, u, anyKey)
	},
	"GuaranteedUpdateWithConflict":              plain(storagetesting.RunTestGuaranteedUpdateWithConflict),
	"GuaranteedUpdateWithSuggestionAndConflict": plain(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	"CompactRevision": func(ctx context.Context, t *testing.T, u *upstream) {
		u.increaseRevision(ctx, t) // the test wants a revision to begin with
		storagetesting.RunTestCompactRevision(ctx, t, u, u.increaseRevision, u.compact)
	},
	"Watch": plain(storagetesting.RunTestWatch),
	"WatchFromZero": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestWatchFromZero(ctx, t, u, u.compact)
	},
	"DeleteTriggerWatch":                plain(storagetesting.RunTestDeleteTriggerWatch),
	"WatchFromNonZero":                  plain(storagetesting.RunTestWatchFromNonZero),
	"DelayedWatchDelivery":              plain(storagetesting.RunTestDelayedWatchDelivery),
	"SlowWatcherTimeout":                plain(storagetesting.RunTestWatcherTimeout),
	"WatchDeleteEventObjectHaveLatest":  plain(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	"ClusterScopedWatch":                plain(storagetesting.RunTestClusterScopedWatch),
	"NamespaceScopedWatch":              plain(storagetesting.RunTestNamespaceScopedWatch),
	"BookmarksAreOptional":              plain(storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
	"SendInitialEventsBackwardCompat":   plain(storagetesting.RunSendInitialEventsBackwardCompatibility),
	"WatchSemantics":                    plain(storagetesting.RunWatchSemantics),
	"WatchSemanticInitialEventExtended": plain(storagetesting.RunWatchSemanticInitialEventsExtended),
	"WatchListMatchSingle":              plain(storagetesting.RunWatchListMatchSingle),
	"DispatchBookmarkEvents": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, u, true)
	},
}
