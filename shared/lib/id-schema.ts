import { z } from 'zod'

/** Makes of a schema of texts one of ids of a kind. Texts become ids here, by `hasPrefix` and by `idFrom`. */
export const idIn = <Kind extends string>(form: z.ZodString): z.ZodType<Kind, string> =>
  form as unknown as z.ZodType<Kind, string>

export const anyId = <Kind extends string>(): z.ZodType<Kind, string> => idIn<Kind>(z.string())
