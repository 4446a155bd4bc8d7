const form =
  /^# \d{4}: .+\n\nStatus: (?:accepted|superseded by \d{4})\. Date: \d{4}-\d\d-\d\d\.\n\n## Context\n[\s\S]+\n## Decision\n[\s\S]+\n## Consequences\n/

/** The first line of a decision record that has another form than the others; -1: it has theirs. */
export const misformedRecord = (text: string): number => (form.test(text) ? -1 : 0)
