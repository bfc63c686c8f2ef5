package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// A shelf keeps things by id and in the order of their arrival. Its owner locks it.
type shelf[T any] struct {
	last  int64
	items []item[T] // by seq; removed ones stay until half of them are
	gone  int
	byID  map[string]int64 // to seq
	count map[string]int   // by queue
}

type item[T any] struct {
	seq       int64
	id, queue string
	removed   bool
	value     T
}

func newShelf[T any]() *shelf[T] {
	return &shelf[T]{byID: map[string]int64{}, count: map[string]int{}}
}

// put replaces the item of that id in its place or adds one.
func (s *shelf[T]) put(id, queue string, value T) {
	if it := s.get(id); it != nil {
		s.count[it.queue]--
		s.count[queue]++
		it.queue, it.value = queue, value
		return
	}
	s.last++
	s.items = append(s.items, item[T]{seq: s.last, id: id, queue: queue, value: value})
	s.byID[id] = s.last
	s.count[queue]++
}

// get is good until the next put or remove.
func (s *shelf[T]) get(id string) *item[T] {
	seq, ok := s.byID[id]
	if !ok {
		return nil
	}
	return &s.items[s.at(seq)]
}

func (s *shelf[T]) remove(id string) {
	it := s.get(id)
	if it == nil {
		return
	}
	delete(s.byID, id)
	s.count[it.queue]--
	*it = item[T]{seq: it.seq, removed: true}
	if s.gone++; s.gone > len(s.items)/2 {
		s.items = slices.DeleteFunc(s.items, func(it item[T]) bool { return it.removed })
		s.gone = 0
	}
}

func (s *shelf[T]) len(queue string) int {
	if queue == "" {
		return len(s.byID)
	}
	return s.count[queue]
}

// page lists up to limit items after the cursor, and the cursor of the next page.
func (s *shelf[T]) page(queue, cursor string, limit int) (page []item[T], next string, err error) {
	var after int64
	if cursor != "" {
		if after, err = strconv.ParseInt(cursor, 10, 64); err != nil {
			return nil, "", fmt.Errorf("job: cursor %q is not one that Page returned", cursor)
		}
	}
	for _, it := range s.items[s.at(after+1):] {
		if it.removed || queue != "" && it.queue != queue {
			continue
		}
		if len(page) == max(1, limit) {
			return page, strconv.FormatInt(page[len(page)-1].seq, 10), nil
		}
		page = append(page, it)
	}
	return page, "", nil
}

// at is the index of the first item whose seq is not less.
func (s *shelf[T]) at(seq int64) int {
	i, _ := slices.BinarySearchFunc(s.items, seq, func(it item[T], seq int64) int { return cmp.Compare(it.seq, seq) })
	return i
}
