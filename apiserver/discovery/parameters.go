package discovery

// parameter is one parameter of an operation, in the path or the query.
type parameter struct {
	name, kind, description string
}

var (
	parameterName      = parameter{"name", "string", "name of the object"}
	parameterNamespace = parameter{"namespace", "string", "namespace of the object"}

	parameterPretty          = parameter{"pretty", "string", "'true': the answer is indented"}
	parameterDryRun          = parameter{"dryRun", "string", "'All': everything is done but storing"}
	parameterFieldManager    = parameter{"fieldManager", "string", "who makes this change, at most 128 characters; kept in metadata.managedFields"}
	parameterFieldValidation = parameter{"fieldValidation", "string", "what unknown or duplicate fields lead to: Ignore, Warn (default) or Strict"}
	parameterForce           = parameter{"force", "boolean", "an apply takes over fields that others manage"}
	parameterLabelSelector   = parameter{"labelSelector", "string", "only objects whose labels match"}
	parameterFieldSelector   = parameter{"fieldSelector", "string", "only objects whose fields match"}
)

// Parameters of operations by what they do. kubectl looks for dryRun and
// fieldValidation here before it relies on them.
var (
	writeQuery = []parameter{parameterPretty, parameterDryRun, parameterFieldManager, parameterFieldValidation}
	patchQuery = append(writeQuery[:len(writeQuery):len(writeQuery)], parameterForce)
	listQuery  = []parameter{
		parameterLabelSelector, parameterFieldSelector,
		{"allowWatchBookmarks", "boolean", "a watch may send BOOKMARK events"},
		{"continue", "string", "from where to go on; the metadata.continue of the list before"},
		{"limit", "integer", "at most so many objects are returned"},
		{"resourceVersion", "string", "the version to read at or to watch from; empty: the newest"},
		{"resourceVersionMatch", "string", "how resourceVersion is meant: Exact or NotOlderThan"},
		{"sendInitialEvents", "boolean", "a watch begins with an ADDED event for each existing object"},
		{"timeoutSeconds", "integer", "a list or watch ends after this time, in seconds"},
		{"watch", "boolean", "send changes as they happen instead of a list"},
	}
	deleteQuery = []parameter{
		parameterPretty, parameterDryRun,
		{"gracePeriodSeconds", "integer", "how long the object has to end, in seconds; 0: at once"},
		{"orphanDependents", "boolean", "deprecated: use propagationPolicy"},
		{"propagationPolicy", "string", "what becomes of dependents: Orphan, Background or Foreground"},
	}
)
