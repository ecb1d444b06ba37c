#!/usr/bin/env python3
"""Writes calendar_and_strict.json: vectors of the calendar quota and the strict sub-window counter.

The answers come from the two small models below, which share nothing with the C++ code: Python's
zoneinfo, a search for the first minute of a local day, and a dictionary of counters.

    tests/vectors/calendar_and_strict.py > tests/vectors/calendar_and_strict.json
"""
import datetime as dt
import json
from zoneinfo import ZoneInfo

NS = 10**9
MINUTE = 60 * NS
HOUR = 3600 * NS
DAY = 24 * HOUR
UTC = dt.timezone.utc


def utc(text):
    """UTC nanoseconds of '2026-03-28 23:00' or '2026-03-28 23:00:00.5'."""
    seconds, _, fraction = text.partition(".")
    moment = dt.datetime.fromisoformat(seconds).replace(tzinfo=UTC)
    return int(moment.timestamp()) * NS + int(fraction.ljust(9, "0") or 0)


class Calendar:
    def __init__(self, limit, period, time_zone):
        self.limit, self.period, self.zone = limit, period, ZoneInfo(time_zone)
        self.start = self.end = self.used = 0

    def date_at(self, t):
        moment = dt.datetime.fromtimestamp(t // NS, tz=UTC).astimezone(self.zone)
        return moment.date()

    def first_day(self, day):
        return {"day": day, "week": day - dt.timedelta(days=day.weekday()),
                "month": day.replace(day=1), "year": day.replace(month=1, day=1)}[self.period]

    def next_first_day(self, day):
        if self.period == "day":
            return day + dt.timedelta(days=1)
        if self.period == "week":
            return day + dt.timedelta(days=7)
        if self.period == "month":
            return (day.replace(day=28) + dt.timedelta(days=4)).replace(day=1)
        return day.replace(year=day.year + 1)

    def first_minute(self, day):
        """The first minute whose local date is `day` or later, by looking at every minute."""
        t = utc(day.isoformat() + " 00:00") - 26 * HOUR
        while self.date_at(t) < day:
            t += MINUTE
        return t

    def span(self, t):
        first = self.first_day(self.date_at(t))
        start, end = self.first_minute(first), self.first_minute(self.next_first_day(first))
        while end <= t:  # the old day shows again
            first = self.next_first_day(first)
            start, end = end, self.first_minute(self.next_first_day(first))
        return start, end

    def current(self, t):
        if self.used and self.start <= t < self.end:
            return self.start, self.end, self.used
        start, end = self.span(t)
        if self.used and self.start == end:  # the clock stepped back
            return self.start, self.end, self.used
        return start, end, 0

    def answer(self, t, cost, charge, force=False):
        start, end, used = self.current(t)
        fits = used + cost <= self.limit or cost == 0
        if charge and cost and (fits or force):
            self.start, self.end, self.used = start, end, used + cost
            used += cost
        wait = 0 if fits else "never" if cost > self.limit else end - t
        return fits, max(0, self.limit - used), wait, end - t

    def refund(self, t, units, made):
        if made == self.current(t)[0]:
            self.used = max(0, self.used - units)

    def charged_in(self, t):
        return self.current(t)[0]


class Strict:
    def __init__(self, limit, window_ns, sub_windows):
        self.limit, self.k, self.d = limit, sub_windows, -(-window_ns // sub_windows)
        self.counts = {}

    def current(self, t):
        return max([t // self.d] + [n for n, units in self.counts.items() if units])

    def live(self, t):
        return {n: c for n, c in self.counts.items() if c and n >= self.current(t) - self.k}

    def leaves(self, n, t):
        return (n + self.k + 1) * self.d - t

    def answer(self, t, cost, charge, force=False):
        fits = cost == 0 or sum(self.live(t).values()) + cost <= self.limit
        if charge and cost and (fits or force):
            now = self.current(t)
            self.counts[now] = self.counts.get(now, 0) + cost
        live = self.live(t)
        used, wait = sum(live.values()), 0
        if not fits:
            wait = "never"
            if cost <= self.limit:
                need = used + cost - self.limit
                for n in sorted(live):
                    need -= live[n]
                    if need <= 0:
                        wait = self.leaves(n, t)
                        break
        reset = self.leaves(max(live), t) if live else 0
        return fits, max(0, self.limit - used), wait, reset

    def refund(self, t, units, made):
        if made in self.live(t):
            self.counts[made] = max(0, self.counts[made] - units)

    def charged_in(self, t):
        return self.current(t)


def vector(name, algorithm, config, note, steps):
    """Steps: (t, op, cost). A refund takes back the latest charge, as far as it goes."""
    model = (Calendar if algorithm == "calendar" else Strict)(**config)
    made, out = [], []
    for t, op, cost in steps:
        if op == "refund":
            units = cost
            for charge in reversed(made):
                part = min(units, charge[1])
                if part:
                    model.refund(t, part, charge[0])
                    charge[1] -= part
                    units -= part
            _, remaining, _, reset = model.answer(t, 0, False)
            expect = {"remaining": remaining, "reset_after_ns": reset}
        else:
            window = model.charged_in(t)
            fits, remaining, wait, reset = model.answer(t, cost, op != "peek", op == "force")
            if cost and (op == "force" or (op == "acquire" and fits)):
                made.append([window, cost])
            expect = {"allowed": fits, "remaining": remaining, "retry_after_ns": wait,
                      "reset_after_ns": reset}
            if op == "force":
                del expect["allowed"], expect["retry_after_ns"]
        out.append({"t_ns": t, "op": op, "cost": cost, "expect": expect})
    return {"id": name, "algorithm": algorithm, "config": config, "note": note, "steps": out}


def calendar(name, limit, period, zone, note, steps):
    config = {"limit": limit, "period": period, "time_zone": zone}
    steps = [(utc(t) if isinstance(t, str) else t, op, cost) for t, op, cost in steps]
    return vector(name, "calendar", config, note, steps)


def strict(name, limit, window_ns, k, note, steps):
    config = {"limit": limit, "window_ns": window_ns, "sub_windows": k}
    return vector(name, "sliding_window_strict", config, note,
                  [(int(t), op, cost) for t, op, cost in steps])


A = "acquire"
VECTORS = [
    calendar("CA01", 3, "day", "UTC", "a day of UTC: reset at midnight, not 24 h after the first",
             [("2026-05-04 22:00", A, 2), ("2026-05-04 23:00", A, 2), ("2026-05-04 23:00", A, 1),
              ("2026-05-04 23:59:59.999999999", A, 1), ("2026-05-05 00:00", A, 3),
              ("2026-05-05 00:00", A, 1), ("2026-05-05 00:00", A, 4)]),
    calendar("CA02", 1, "day", "Europe/Berlin", "clocks go forward on 29 March 2026: 23 hours",
             [("2026-03-28 23:00", A, 1), ("2026-03-29 00:59:59", A, 1), ("2026-03-29 01:00", A, 1),
              ("2026-03-29 21:59:59.999999999", A, 1), ("2026-03-29 22:00", A, 1)]),
    calendar("CA03", 2, "day", "Europe/Berlin",
             "clocks go back on 25 October 2026: 25 hours, and both 02:30s are of the same day",
             [("2026-10-24 22:00", A, 1), ("2026-10-25 00:30", A, 1), ("2026-10-25 01:30", A, 1),
              ("2026-10-25 22:59:59.999999999", A, 1), ("2026-10-25 23:00", A, 2)]),
    calendar("CA04", 1, "day", "America/Santiago",
             "8 September 2024 has no midnight: 00:00 is shown as 01:00, and begins the day",
             [("2024-09-07 04:00", A, 1), ("2024-09-08 03:59:59.999999999", A, 1),
              ("2024-09-08 04:00", A, 1), ("2024-09-09 02:59:59.999999999", A, 1),
              ("2024-09-09 03:00", A, 1)]),
    calendar("CA05", 1, "day", "America/Santiago",
             "5 April 2025: 24:00 is shown as 23:00 again, so the day has 25 hours",
             [("2025-04-05 03:00", A, 1), ("2025-04-06 02:59:59", A, 1), ("2025-04-06 03:00", A, 1),
              ("2025-04-06 03:59:59.999999999", A, 1), ("2025-04-06 04:00", A, 1)]),
    calendar("CA06", 1, "day", "America/Havana",
             "2 November 2025 has midnight twice: the first begins the day",
             [("2025-11-02 03:59:59", A, 1), ("2025-11-02 04:00", A, 1), ("2025-11-02 05:00", A, 1),
              ("2025-11-03 04:59:59.999999999", A, 1), ("2025-11-03 05:00", A, 1)]),
    calendar("CA07", 1, "day", "America/St_Johns",
             "29 October 2006: at 00:01 back to 23:01; the new day has begun, and goes on",
             [("2006-10-29 02:29:59", A, 1), ("2006-10-29 02:30", A, 1), ("2006-10-29 02:31", A, 1),
              ("2006-10-29 03:30", A, 1), ("2006-10-30 03:29:59.999999999", A, 1),
              ("2006-10-30 03:30", A, 1)]),
    calendar("CA08", 1, "day", "Pacific/Apia", "30 December 2011 did not happen there",
             [("2011-12-29 10:00", A, 1), ("2011-12-30 09:59:59.999999999", A, 1),
              ("2011-12-30 10:00", A, 1), ("2011-12-31 09:59:59", A, 1), ("2011-12-31 10:00", A, 1)]),
    calendar("CA09", 100, "month", "Europe/Berlin", "31 January to 28 February to 31 March",
             [("2026-01-31 22:59:59", A, 100), ("2026-01-31 22:59:59", A, 1),
              ("2026-01-31 23:00", A, 60), ("2026-02-28 22:59:59.999999999", A, 41),
              ("2026-02-28 23:00", A, 41), ("2026-03-31 21:59:59", A, 60),
              ("2026-03-31 22:00", A, 60)]),
    calendar("CA10", 1, "month", "UTC", "29 February of a leap year is of February",
             [("2028-02-28 23:59:59", A, 1), ("2028-02-29 12:00", A, 1), ("2028-03-01 00:00", A, 1),
              ("2100-02-28 12:00", A, 1), ("2100-02-28 23:59:59", A, 1), ("2100-03-01 00:00", A, 1)]),
    calendar("CA11", 5, "week", "America/New_York",
             "weeks begin on Monday; the one of 8 March 2026 has 167 hours",
             [("2026-03-02 04:59:59", A, 5), ("2026-03-02 05:00", A, 5), ("2026-03-08 06:30", A, 1),
              ("2026-03-09 03:59:59.999999999", A, 1), ("2026-03-09 04:00", A, 1)]),
    calendar("CA12", 2, "year", "Asia/Kathmandu",
             "a year of 365 or 366 days, 5:45 before UTC's",
             [("2027-12-31 18:14:59", A, 2), ("2027-12-31 18:15", A, 1), ("2028-12-30 18:15", A, 1),
              ("2028-12-31 18:14:59.999999999", A, 1), ("2028-12-31 18:15", A, 1)]),
    calendar("CA13", 5, "day", "UTC",
             "the clock steps back over midnight: the newer day goes on, no fresh budget",
             [("2026-05-05 00:00:10", A, 5), ("2026-05-04 23:59:50", A, 1),
              ("2026-05-05 00:00:10", A, 1), ("2026-05-06 00:00", A, 1)]),
    calendar("CA14", 5, "day", "Asia/Tokyo",
             "a refund counts in its own day only; a forced charge may exceed the limit",
             [("2026-05-04 12:00", A, 5), ("2026-05-04 13:00", "refund", 2),
              ("2026-05-04 13:00", A, 2), ("2026-05-04 15:00", "refund", 2),
              ("2026-05-04 15:00", A, 5), ("2026-05-04 15:00", A, 1),
              ("2026-05-05 14:00", "force", 7), ("2026-05-05 14:00", "peek", 1),
              ("2026-05-05 15:00", "force", 7), ("2026-05-05 15:00", A, 1),
              ("2026-05-06 15:00", A, 5)]),
    calendar("CA15", 0, "month", "UTC", "0 denies everything",
             [("2026-05-04 12:00", A, 1), ("2026-05-04 12:00", A, 0)]),
    calendar("CA16", 1, "day", "America/Toronto",
             "30 March 1919: from 23:30 to 00:30, so the day ends and the next begins half an hour early",
             [("1919-03-31 04:29:59", A, 1), ("1919-03-31 04:30", A, 1), ("1919-03-31 05:00", A, 1),
              ("1919-04-01 03:59:59.999999999", A, 1), ("1919-04-01 04:00", A, 1)]),
    strict("SC01", 10, 10 * NS, 4,
           "what was spent at 0 comes back at 12.5 s: between window and window + 2.5 s",
           [(0, A, 10), (0, A, 1), (9.99e9, A, 1), (10e9, A, 1), (12499999999, A, 1),
            (12.5e9, A, 10), (24.9e9, A, 1), (25e9, A, 10)]),
    strict("SC02", 10, 10 * NS, 4, "recovery bit by bit: the wait runs over a prefix of counters",
           [(0, A, 4), (2.6e9, A, 3), (5.1e9, A, 3), (6e9, A, 1), (6e9, A, 4), (6e9, A, 5),
            (6e9, A, 8), (6e9, A, 11), (12.5e9, A, 5), (12.5e9, A, 4), (15e9, A, 3), (15e9, A, 1)]),
    strict("SC03", 5, 10 * NS, 1, "one sub-window: two fixed windows together",
           [(9999999999, A, 5), (10e9, A, 1), (19999999999, A, 1), (20e9, A, 5), (20e9, A, 1)]),
    strict("SC04", 3, NS, 3, "a window that three does not divide: sub-windows of 333,333,334 ns",
           [(0, A, 1), (333333333, A, 1), (333333334, A, 1), (333333334, A, 1), (NS, A, 1),
            (1333333335, A, 1), (1333333336, A, 2), (1333333336, A, 1)]),
    strict("SC05", 4, 8 * NS, 4, "the clock steps back: nothing leaves, charges count as newest",
           [(5e9, A, 3), (1e9, A, 1), (1e9, A, 1), (13.9e9, A, 1), (14e9, A, 4)]),
    strict("SC06", 6, 6 * NS, 3, "refunds return to their own sub-window, while it counts",
           [(0, A, 4), (2e9, A, 2), (2e9, "refund", 3), (2e9, A, 3), (7.9e9, A, 1), (8e9, A, 3),
            (8e9, A, 1), (100e9, "refund", 6), (100e9, A, 6), (100e9, A, 1)]),
    strict("SC07", 5, 10 * NS, 5, "a forced charge exceeds the limit and is waited for",
           [(0, "force", 8), (0, "peek", 1), (2e9, "force", 1), (11.9e9, A, 1), (12e9, A, 4),
            (12e9, A, 1), (14e9, A, 1)]),
    strict("SC08", 0, 10 * NS, 5, "0 denies everything", [(0, A, 1), (0, A, 0)]),
    strict("SC09", 5, 10 * NS, 10, "no burst at an edge: never more than 5 in any 10 s",
           [(9999999999, A, 5), (10e9, A, 5), (19.9e9, A, 1), (19999999999, A, 1), (20e9, A, 5)]),
    strict("SC10", 2, 60 * NS, 16, "after a long idle time everything is there again",
           [(0, A, 2), (1e6 * NS, A, 2), (1e6 * NS, A, 1)]),
]


def main():
    about = ("Vectors in the form of algorithms.json, written by calendar_and_strict.py from models "
             "of its own. t_ns is UTC for the calendar, the steady clock for the strict counter.")
    parts = []
    for v in VECTORS:
        head = json.dumps({k: x for k, x in v.items() if k != "steps"})[:-1]
        steps = ",\n".join("      " + json.dumps(s) for s in v["steps"])
        parts.append(f'    {head}, "steps": [\n{steps}\n    ]}}')
    print('{\n  "version": 1,\n  "about": ' + json.dumps(about) + ',\n  "algorithms": [\n' +
          ",\n".join(parts) + "\n  ]\n}")


if __name__ == "__main__":
    main()
