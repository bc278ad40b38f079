//! When a request is sent again, and how long to wait before.

use std::time::Duration;

use super::{Headers, Request, Response, send};
use crate::{Error, ErrorCode};

/// Statuses that another attempt may not have.
const TRANSIENT: [u16; 4] = [429, 502, 503, 504];

/// The pause before the second attempt; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause that a server can ask for. For more, the caller gets the response at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Sends a request, and up to `retries` times again where that may help.
pub(super) async fn send_with_retries(request: &Request, retries: u32) -> Result<Response, Error> {
    let mut pause = FIRST_PAUSE;
    for _ in 0..retries {
        let asked = match send(request.clone()).await {
            Err(error) if error.code == ErrorCode::Unavailable => None,
            Ok(response) if TRANSIENT.contains(&response.status) => match response.retry_after() {
                Some(time) if time > LONGEST_PAUSE => return Ok(response),
                asked => asked,
            },
            outcome => return outcome,
        };
        crate::sleep(asked.unwrap_or(pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    send(request.clone()).await
}

/// How long a server asks to wait: in seconds, or until a time, which is compared with the server's own clock.
pub(super) fn retry_after(headers: &Headers) -> Option<Duration> {
    let value = headers.get("retry-after")?;
    let seconds = match value.parse() {
        Ok(seconds) => seconds,
        Err(_) => seconds(value)?.saturating_sub(seconds(headers.get("date")?)?),
    };
    Some(Duration::from_secs(seconds))
}

/// The seconds since 1970 of a time as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds(date: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, rest) = date.split_once(", ")?;
    let parts: Vec<&str> = rest.split([' ', ':']).collect();
    let [day, month, year, hour, minute, second, "GMT"] = parts[..] else { return None };
    let month = (month.len() == 3).then(|| MONTHS.find(month)).flatten()? as u64 / 3 + 1;
    let number = |text: &str, most: u64| text.parse().ok().filter(|number: &u64| *number <= most);
    let (day, year) = (number(day, 31)?, number(year, 9999).filter(|year| *year >= 1970)?);
    let time = number(hour, 23)? * 3600 + number(minute, 59)? * 60 + number(second, 60)?;
    // Years begin in March, so that a leap day is the last day of one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    const DAYS_BEFORE_1970: u64 = 719_469;
    Some((days - DAYS_BEFORE_1970) * 86_400 + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_http() {
        let check =
            |date: &str, expected: Option<u64>| assert_eq!(seconds(date), expected, "{date}");
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
        check("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199));
        check("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200));
        check("Thu, 31 Dec 1969 23:59:59 GMT", None);
        check("Sun, 06 Nov 1994 08:49:37 UTC", None);
        check("Sunday, 06-Nov-94 08:49:37 GMT", None);
        check("tomorrow", None);
    }

    #[test]
    fn a_server_says_how_long_to_wait() {
        let check = |headers: &[(&str, &str)], expected: Option<u64>| {
            let headers = Headers::from_iter(headers.iter().copied());
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{headers:?}");
        };
        check(&[("retry-after", "120")], Some(120));
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"), date], Some(10));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:27 GMT"), date], Some(0));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], None);
        check(&[("retry-after", "soon"), date], None);
        check(&[date], None);
    }
}
