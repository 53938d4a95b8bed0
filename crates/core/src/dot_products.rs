//! Dot products of vectors of bytes, on which a search by meaning spends its time, among notes and in memory.
//!
//! One plain loop is compiled for each set of vector instructions, and the processor is asked for them at run time.
//! Intrinsics are not faster: with AVX-512 the loop waits for memory either way.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "code for vector instructions is called after asking the processor for them")
)]

/// The dot product of a query with each of the rows, which lie one after the other.
pub fn dot_products(query: &[i8], rows: &[i8], products: &mut [i32]) {
    assert_eq!(rows.len(), query.len() * products.len(), "there is a row for each product");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has the instructions.
            return unsafe { avx512(query, rows, products) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(query, rows, products) };
        }
    }
    each_row(query, rows, products);
}

/// The dot product of two vectors of the same length.
#[inline(always)]
pub fn dot_product(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[inline(always)]
fn each_row(query: &[i8], rows: &[i8], products: &mut [i32]) {
    for (row, product) in rows.chunks_exact(query.len()).zip(products) {
        *product = dot_product(query, row);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw")]
fn avx512(query: &[i8], rows: &[i8], products: &mut [i32]) {
    each_row(query, rows, products);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(query: &[i8], rows: &[i8], products: &mut [i32]) {
    each_row(query, rows, products);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_extreme_bytes_are_exact_for_every_length() {
        for length in [1, 63, 64, 65, 384, 1000] {
            let row = |seed: usize| (0..length).map(move |at| [-128, 127, 0, -1, 90][(at * seed + seed) % 5]);
            let query: Vec<i8> = row(3).collect();
            let rows: Vec<i8> = (1..8).flat_map(row).collect();
            let expected: Vec<i64> =
                (1..8).map(|seed| row(seed).zip(&query).map(|(a, b)| i64::from(a) * i64::from(*b)).sum()).collect();
            let mut products = [0; 7];
            dot_products(&query, &rows, &mut products);
            assert_eq!(products.map(i64::from).to_vec(), expected, "{length}");
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                let mut products = [0; 7];
                // SAFETY: the processor has the instructions.
                unsafe { avx2(&query, &rows, &mut products) };
                assert_eq!(products.map(i64::from).to_vec(), expected, "{length}");
            }
        }
    }
}
