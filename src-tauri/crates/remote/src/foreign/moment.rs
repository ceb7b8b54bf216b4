//! The times of such a host: RFC 3339, where ours are milliseconds.

/// Milliseconds since the Unix epoch.
#[derive(Debug, PartialEq)]
pub(super) struct Moment(pub(super) u64);

impl std::str::FromStr for Moment {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let part = |range: std::ops::Range<usize>| {
            text.get(range)
                .and_then(|part| part.parse::<i64>().ok())
                .ok_or(())
        };
        let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
        let (hour, minute, second) = (part(11..13)?, part(14..16)?, part(17..19)?);
        let rest = text.get(19..).ok_or(())?;
        let zone = rest.find(['Z', 'z', '+', '-']).ok_or(())?;
        let fraction = rest.get(..zone).ok_or(())?.trim_start_matches('.');
        let thousandths = format!("{fraction:0<3}")
            .get(..3)
            .and_then(|digits| digits.parse::<i64>().ok());
        let sign = if rest.get(zone..=zone) == Some("-") {
            -1
        } else {
            1
        };
        let ahead = match rest.get(zone + 1..).unwrap_or_default().split_once(':') {
            Some((hours, minutes)) => {
                let number = |text: &str| text.parse::<i64>().map_err(|_| ());
                sign * (number(hours)? * 60 + number(minutes)?)
            }
            None => 0,
        };
        // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March.
        let (years, months) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let days =
            years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day
                - 719_469;
        let minutes = (days * 24 + hour) * 60 + minute - ahead;
        let moment = (minutes * 60 + second) * 1000 + thousandths.ok_or(())?;
        u64::try_from(moment).map(Self).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_zone() {
        for (text, wanted) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T23:59:59.5Z", Some(1_709_251_199_500)),
            ("2026-12-01T12:32:01.839037344Z", Some(1_796_128_321_839)),
            ("2026-12-01T14:02:01.839+01:30", Some(1_796_128_321_839)),
            ("2026-12-01T06:32:01-06:00", Some(1_796_128_321_000)),
            ("1969-12-31T23:59:59Z", None),
            ("2026-12-01", None),
            ("", None),
        ] {
            let read = text.parse::<Moment>().ok().map(|moment| moment.0);
            assert_eq!(read, wanted, "{text}");
        }
    }
}
