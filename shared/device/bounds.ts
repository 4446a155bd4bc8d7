import { z } from 'zod'

// Bounds of what a device says of itself: it is stored as it came, and shown and looked at often.

/** Milliseconds since 1970, up to the end of the year 9999: what is later cannot be written as a timestamp. */
export const deviceTime = z.number().int().nonnegative().max(253_402_300_799_999)

/** A text whose end is cut off beyond these characters. */
export const cutText = (chars: number) => z.string().overwrite((text) => text.slice(0, chars))
