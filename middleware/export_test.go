package middleware

// Keys is the number of keys that m remembers.
func Keys(m *Memory) int { return m.size() }
