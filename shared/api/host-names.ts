import { z } from 'zod'

/** A name of DNS or an address, without a port. A name stands for itself alone, not for those below it. */
export const egressHost = z
  .string()
  .toLowerCase()
  .max(253)
  .regex(
    /^[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_-]{1,63})*$|^[0-9a-f]*:[0-9a-f:.]+$/,
    'must be a host name, such as api.example.com, or an address',
  )

/** A name of DNS or an address as `egressHost` takes, with a port. Without a port it means 443. */
export const brokerHost = z
  .string()
  .toLowerCase()
  .max(259)
  .regex(
    /^[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_-]{1,63})*(?::[1-9]\d{0,4})?$/,
    'must be a host name, perhaps with a port: api.example.com:8443',
  )
  .refine((text) => Number(text.split(':')[1] ?? 1) <= 65_535, 'has a port that does not exist')
