package supervisor

import (
	"errors"
	"fmt"
	"slices"
)

// reloadTries is how many boots of a new build may fail before the reload gives up.
const reloadTries = 2

// A reload replaces every worker by one of a new build, as planned replacements.
type reload struct {
	build  int
	failed int
}

var (
	errReloading = errors.New("another reload is running")
	errNotUp     = errors.New("the pool is not running")
	errEnding    = errors.New("the pool is shutting down")
)

func (m *machine) startReload(build int) {
	m.builds = append(m.builds, build)
	switch {
	case m.phase >= ending:
		m.do(replyReload{build, errEnding})
	case m.phase != running:
		m.do(replyReload{build, errNotUp})
	case m.reload != nil:
		m.do(replyReload{build, errReloading})
	default:
		m.reload = &reload{build: build}
		m.hurry()
	}
}

// hurry ends the backoff of every index that waits: the new build may be what cures it.
func (m *machine) hurry() {
	for i := range m.slots {
		if s := &m.slots[i]; s.due.After(m.now) {
			s.due = m.now
		}
	}
}

// wishReload queues the indexes that do not run the new build yet.
func (m *machine) wishReload() {
	if m.reload == nil {
		return
	}
	for i := range m.slots {
		s := &m.slots[i]
		if s.build == m.reload.build || s.wish != Unknown || s.next != nil {
			continue
		}
		switch {
		case s.serving == nil && !s.due.IsZero():
			s.wish, s.why = Reloaded, Reloaded
		case s.serving != nil && s.serving.build != m.reload.build:
			m.wishes(s, s.serving, Reloaded)
		}
	}
}

// finishReload ends the reload when every index serves with the new build.
func (m *machine) finishReload() {
	if m.reload == nil {
		return
	}
	for i := range m.slots {
		p := m.slots[i].serving
		if p == nil || !p.confirmed || p.build != m.reload.build {
			return
		}
	}
	m.emitPool(EventReloaded, Reloaded, "")
	m.do(replyReload{m.reload.build, nil})
	m.reload = nil
}

// reloadFailed counts a boot of the new build that failed.
func (m *machine) reloadFailed(err error) {
	m.reload.failed++
	if m.reload.failed >= reloadTries {
		m.abortReload(err)
	}
}

// abortReload leaves every index with the build that it has: successors that have not taken over
// are killed, what was replaced stays replaced.
func (m *machine) abortReload(err error) {
	build, renewed := m.reload.build, 0
	m.reload = nil
	for i := range m.slots {
		s := &m.slots[i]
		if s.build == build {
			renewed++
		}
		if s.wish == Reloaded {
			s.wish = Unknown
		}
		if s.why == Reloaded {
			s.why = ReloadAborted
		}
		if s.next != nil && s.next.build == build && s.build != build && !s.next.current {
			m.kill(s.next, ReloadAborted)
		}
	}
	if renewed > 0 {
		err = fmt.Errorf("reload aborted with %d of %d workers replaced: %w", renewed, len(m.slots), err)
	} else {
		err = fmt.Errorf("reload aborted, the workers are the old ones: %w", err)
	}
	m.emitPool(EventReloadAborted, ReloadAborted, err.Error())
	m.do(replyReload{build, err})
}

// dropBuilds lets go of builds that no later spawn can want.
func (m *machine) dropBuilds() {
	if len(m.builds) == 1 {
		return
	}
	m.builds = slices.DeleteFunc(m.builds, func(build int) bool {
		if m.buildInUse(build) {
			return false
		}
		m.do(dropBuild{build})
		return true
	})
}

func (m *machine) buildInUse(build int) bool {
	if m.reload != nil && m.reload.build == build {
		return true
	}
	return slices.ContainsFunc(m.slots, func(s slot) bool {
		return s.build == build || s.next != nil && s.next.build == build ||
			s.serving != nil && s.serving.build == build
	})
}
