// Package ttlafterfinished deletes Jobs that ended as long ago as their spec.ttlSecondsAfterFinished says.
//
// Reads: Jobs. Writes: Jobs (delete, with their pods). It owns no field.
//
// It promises: a Job is deleted only when the API itself, not only the cache, says that its time is over, and only that
// Job and not its successor of the same name. A condition that ended in the future, or an endless one, deletes nothing.
//
// Tested in synctest bubbles over client-go's fake clientset.
package ttlafterfinished
