import { z } from 'zod'

/** A schema of texts as one of ids of a kind. Here, and by `hasPrefix`, a text becomes an id. */
export const idIn = <Kind extends string>(form: z.ZodString): z.ZodType<Kind, string> =>
  form as unknown as z.ZodType<Kind, string>

export const anyId = <Kind extends string>(): z.ZodType<Kind, string> => idIn<Kind>(z.string())
