// Package cronjob owns the Jobs of each CronJob: it creates one at each time of the schedule, tells in the status which
// are active, and deletes those that ended long ago.
//
// Reads: CronJobs, Jobs. Writes: Jobs (create, delete), CronJob status, Events.
// Owns these fields: CronJob .status (all of it); of Jobs that it creates .metadata.name, .metadata.ownerReferences and
// the annotation batch.kubernetes.io/cronjob-scheduled-timestamp.
//
// It promises: there is one Job at most for each time of a schedule, whatever write fails, however far the caches lag
// and whoever leads. The Job's name follows from that time, a Job that the status does not know is entered into it, and
// no Job is deleted before the status has what it tells. Of several times that were missed only the latest gets a Job.
// Nothing is written when nothing has changed; what stands in the way of a Job is told once, not in each pass.
// The wall clock is looked at again every minute (sleepMax), so a clock that jumps forward starts one Job at most,
// and after one that jumps back nothing starts before lastScheduleTime is reached again.
//
// A new schedule or time zone does not make up for times before the change, unless the leader changes before its first
// time: the status has no field for it.
//
// Tests: schedules against a count of all times, and the plan, as tables and on generated inputs; the whole controller in
// synctest bubbles, with generated worlds judged by a model of its own, and with faults at each write.
package cronjob
